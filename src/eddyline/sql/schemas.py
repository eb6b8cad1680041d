"""The streams, tables and functions that a query may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Schemas:
    """The streams, tables and functions that a query may name.

    Parameters
    ----------
    streams, tables
        By name, the columns and their types; types are written as in Spark SQL.
    functions
        Registered Python functions: from the name in queries to the name registered with Spark.
    timezone
        Time zone of the session; text is compared with timestamps in it.
    ansi
        Whether the session follows the ANSI standard: `spark.sql.ansi.enabled`.
    double_quoted_identifiers
        Whether double quotes enclose names, not texts.
    times
        By stream name, the column with its event time; streams without one are left out.

    """

    streams: Mapping[str, Mapping[str, str]]
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    timezone: str = "UTC"
    ansi: bool = True
    double_quoted_identifiers: bool = False
    times: Mapping[str, str] = field(default_factory=dict)
