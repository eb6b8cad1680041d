"""Which columns may classify rows, as far as the schema says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from eddyline.errors import EddylineError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OTHERS_MAX = 6
TEXT_MAX = 40
_USABLE = (BooleanType, NumericType, StringType, DateType, TimestampType, TimestampNTZType)


def is_usable(kind: DataType) -> bool:
    """Whether columns of a type can classify rows."""
    collation = getattr(kind, "collation", "UTF8_BINARY")
    return isinstance(kind, _USABLE) and collation == "UTF8_BINARY"


def quoted(name: str) -> str:
    """Return a column's name as it is written in SQL.

    Examples
    --------
    >>> print(quoted("we`ird.name"))
    `we``ird.name`

    """
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def usable_columns(df: DataFrame) -> dict[str, DataType]:
    """Return the columns that can classify rows, with their types."""
    counted = Counter(name.lower() for name in df.columns)
    return {
        f.name: f.dataType
        for f in df.schema
        if counted[f.name.lower()] == 1 and is_usable(f.dataType)
    }


def shortened_texts(df: DataFrame, arguments: Sequence[str]) -> frozenset[str]:
    """Return the columns of which `candidate_attributes` lets only short texts cross."""
    usable = usable_columns(df)
    others = [name for name in usable if name not in arguments][:OTHERS_MAX]
    return frozenset(name for name in others if isinstance(usable[name], StringType))


def check_columns(df: DataFrame, classify_by: Sequence[str]) -> None:
    """Raise if a column that is to classify rows is missing, or cannot."""
    usable = usable_columns(df)
    for name in classify_by:
        if name not in df.columns:
            raise EddylineError(
                f"classify_by names {name!r}, but the DataFrame has no such column; "
                f"it has {', '.join(df.columns)}"
            )
        if name not in usable:
            raise EddylineError(
                f"classify_by names {name!r}, which cannot classify rows: only one column of "
                f"that name, with numbers, text, booleans, dates or timestamps, can"
            )


def candidate_attributes(
    df: DataFrame, classify_by: Sequence[str] | None, arguments: Sequence[str]
) -> dict[str, Column]:
    """Return the columns that may classify rows, by name.

    Named columns are taken as they are. If none are named: the predicates' arguments, which cross
    into Python anyway, and a few others. Texts among the others cross only where they are short, so
    that a column never costs more than the predicates do.
    """
    if classify_by is not None:
        check_columns(df, classify_by)
        return {name: F.col(quoted(name)) for name in classify_by}
    usable = usable_columns(df)
    chosen = {name: F.col(quoted(name)) for name in arguments if name in usable}
    others = [name for name in usable if name not in chosen]
    shortened = shortened_texts(df, arguments)
    for name in others[:OTHERS_MAX]:
        column = F.col(quoted(name))
        if name in shortened:
            column = F.when(F.char_length(column) <= TEXT_MAX, column)
        chosen[name] = column
    return chosen
