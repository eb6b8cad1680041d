"""Constant intervals in queries."""

from __future__ import annotations

import re

from sqlglot import exp

from eddyline.sql.dialect import to_sql

_UNITS_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 10**3,
    "SECOND": 10**6,
    "MINUTE": 60 * 10**6,
    "HOUR": 3600 * 10**6,
    "DAY": 86400 * 10**6,
    "WEEK": 7 * 86400 * 10**6,
}
_INTERVAL = re.compile(r"INTERVAL\s+'?(\d+)'?\s+([A-Z]+?)S?", re.IGNORECASE)


def interval_us(node: exp.Expression) -> int | None:
    """Return the length of a constant interval; None if it is something else."""
    if not isinstance(node, exp.Interval):
        return None
    parsed = _INTERVAL.fullmatch(to_sql(node).strip())
    unit = parsed[2].upper() if parsed else ""
    return int(parsed[1]) * _UNITS_US[unit] if parsed and unit in _UNITS_US else None
