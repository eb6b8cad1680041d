"""The streams, tables and functions that a query may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from eddyline.sql.comparison import ColumnTypes


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
    comparing
        Makes the types of columns that conditions are compared by, from types, time zone and
        whether the session follows the standard.

    """

    streams: Mapping[str, Mapping[str, str]]
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    timezone: str = "UTC"
    ansi: bool = True
    double_quoted_identifiers: bool = False
    times: Mapping[str, str] = field(default_factory=dict)
    comparing: Callable[[Mapping[str, str], str, bool], ColumnTypes] = ColumnTypes

    def column_types(self, columns: Mapping[str, str]) -> ColumnTypes:
        """Return the types of a stream's columns, as conditions are compared by them."""
        return self.comparing(columns, self.timezone, self.ansi)
