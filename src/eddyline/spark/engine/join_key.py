"""A key of a stream: an expression whose value is compared with keys of other streams."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    TimestampNTZType,
    TimestampType,
)

from eddyline.sql.placeholders import display_text

_OWN_CODE = (
    BooleanType,
    IntegralType,
    FloatType,
    DoubleType,
    DateType,
    TimestampType,
    TimestampNTZType,
)


@dataclass(frozen=True)
class JoinKey:
    """A key of a stream.

    Parameters
    ----------
    text
        An expression over the stream, as Spark SQL.
    compared_as
        Type in which it is compared with the columns of other streams.

    """

    text: str
    compared_as: DataType

    @property
    def name(self) -> str:
        """Identifies the key in files."""
        return f"{display_text(self.text)}:{self.compared_as.simpleString()}"

    @property
    def is_hashed(self) -> bool:
        """Whether values are too large to be their own code."""
        return not isinstance(self.compared_as, _OWN_CODE)
