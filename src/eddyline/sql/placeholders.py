"""Names that stand for streams, tables and rows in the SQL of a compiled query.

Users cannot use names that begin with `RESERVED`, so these never meet names or texts of theirs.
"""

from __future__ import annotations

#: What names of users may not begin with, and their queries may not contain.
RESERVED = "__eddyline"

#: Name of the stream in conditions and function arguments, independent of its alias: equal
#: conditions of different queries are equal texts.
STREAM = "__eddyline_stream"
#: Placeholder of the matching rows in the SQL that makes the result.
ROWS = "rows"
#: Name of the combinations of rows that the result of a join of streams is made of.
COMBINATIONS = "__eddyline_rows"
#: Prefix of the placeholders of static tables.
TABLE = "table_"


def display_text(text: str) -> str:
    """Return a condition over `STREAM` in the form in which the user wrote it.

    Examples
    --------
    >>> display_text("`__eddyline_stream`.`lux` > 500")
    '`lux` > 500'

    """
    return text.replace(f"`{STREAM}`.", "")


def escape_braces(sql: str) -> str:
    """Double the braces of a text that `SparkSession.sql` formats.

    Examples
    --------
    >>> escape_braces("room RLIKE '[0-9]{2}'")
    "room RLIKE '[0-9]{{2}}'"

    """
    return sql.replace("{", "{{").replace("}", "}}")
