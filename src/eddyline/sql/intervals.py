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


#: Clocks of a time zone are changed by no more than this.
CLOCK_CHANGE_US = _UNITS_US["DAY"]
_UTC = frozenset(["utc", "etc/utc", "gmt", "z", "+00:00"])


def is_utc(timezone: str) -> bool:
    """Whether clocks of a time zone are never changed, as far as its name tells."""
    return timezone.lower() in _UTC


def is_exact(node: exp.Expression, timezone: str) -> bool:
    """Whether adding a constant interval always adds the same time.

    Days are those of the time zone, and the day on which clocks are changed is longer or shorter.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> is_exact(parse_one("INTERVAL '1' DAY"), "UTC")
    True
    >>> is_exact(parse_one("INTERVAL '1' DAY"), "Europe/Berlin")
    False

    """
    return is_utc(timezone) or not re.search(r"\b(DAY|WEEK)S?\b", to_sql(node), re.IGNORECASE)


def interval_us(node: exp.Expression) -> int | None:
    """Return the length of a constant interval; None if it is something else."""
    if not isinstance(node, exp.Interval):
        return None
    parsed = _INTERVAL.fullmatch(to_sql(node).strip())
    unit = parsed[2].upper() if parsed else ""
    return int(parsed[1]) * _UNITS_US[unit] if parsed and unit in _UNITS_US else None
