"""Values that comparisons across streams use, as floating-point numbers that keep their order."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    NumericType,
    TimestampType,
)

from eddyline.spark.common.columns import quoted
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.sql.placeholders import STREAM, display_text

if TYPE_CHECKING:
    from pyspark.sql import Column


class Kind(Enum):
    """Values that can be compared with each other."""

    NUMBER = "number"
    DATE = "date"
    TIMESTAMP = "timestamp"


class ComparedKey(NamedTuple):
    """An expression over a stream whose value is compared with values of other streams."""

    text: str
    kind: Kind

    @property
    def name(self) -> str:
        """Identifies the value in files."""
        return f"{display_text(self.text)}:{self.kind.value}"

    def column(self, stream: StreamInfo) -> Column:
        """Return the value as a number; NULL stays NULL, and NaN, the largest one, is infinite."""
        value = stream.expression(self.text)
        if self.kind is Kind.DATE:
            return F.unix_date(value).cast("double")
        if self.kind is Kind.TIMESTAMP:
            return F.unix_micros(value).cast("double")
        return F.nanvl(value.cast("double"), F.lit(float("inf")))


class RoleBound(NamedTuple):
    """A value of one role is at most a value of another one plus a number."""

    low_role: int
    low: ComparedKey
    high_role: int
    high: ComparedKey
    offset: float


def kind_of(data_type: DataType) -> Kind | None:
    """Return how values of a type are compared; None if they cannot be numbers.

    Examples
    --------
    >>> from pyspark.sql.types import IntegerType, StringType
    >>> kind_of(IntegerType()).value, kind_of(StringType())
    ('number', None)

    """
    if isinstance(data_type, NumericType):
        return Kind.NUMBER
    if isinstance(data_type, DateType):
        return Kind.DATE
    return Kind.TIMESTAMP if isinstance(data_type, TimestampType) else None


def is_whole(data_type: DataType) -> bool:
    """Whether the numbers that values of a type become are whole."""
    return isinstance(data_type, IntegralType | DateType | TimestampType)


def may_be_nan(data_type: DataType) -> bool:
    """Whether a type has the value NaN."""
    return isinstance(data_type, FloatType | DoubleType)


def is_event_time(key: ComparedKey, stream: StreamInfo) -> bool:
    """Whether a value is the event time of the stream, which SteMs have anyway."""
    if stream.time is None or not isinstance(stream.schema[stream.time].dataType, TimestampType):
        return False
    return key.text == f"`{STREAM}`.{quoted(stream.time)}"
