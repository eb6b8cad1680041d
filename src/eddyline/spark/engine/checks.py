"""Checks of what an engine is opened with, and of what is registered: names, schemas, times."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from eddyline.errors import EngineError
from eddyline.sql.placeholders import RESERVED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_DELAY = re.compile(r"\s*(\d+)\s*(microsecond|millisecond|second|minute|hour|day)s?\s*")
_UNIT_US = {
    "microsecond": 1,
    "millisecond": 10**3,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86400 * 10**6,
}


def check_place(spark: SparkSession, path: str | os.PathLike[str]) -> None:
    """Refuse a session or a path that an engine cannot be opened with."""
    if ".connect." in type(spark).__module__:
        raise EngineError(
            "an engine needs a classic Spark session: it plans every micro-batch in the "
            "process that opened it; use SparkSession.builder.master(...)"
        )
    if "://" in str(path):
        raise EngineError(
            f"the engine's path {str(path)!r} is an address; give a folder that this process "
            f"can write itself, such as a mounted one"
        )


def check_name(name: str, what: str) -> None:
    """Refuse an invalid name.

    Parameters
    ----------
    name
        The name.
    what
        What it is for: `stream`, `table`, `function` or `query`.

    Examples
    --------
    >>> check_name("my stream", "stream")
    Traceback (most recent call last):
    ...
    eddyline.errors.EngineError: 'my stream' cannot be the name of a stream; use letters, ...

    """
    if what == "query":
        if not isinstance(name, str) or not name:
            raise EngineError(f"{name!r} cannot be the name of a query; give a text, not empty")
    elif not isinstance(name, str) or not _NAME.fullmatch(name):
        raise EngineError(
            f"{name!r} cannot be the name of a {what}; use letters, digits and underscores, "
            f"beginning with a letter"
        )


def check_free(name: str, what: str, taken: Iterable[str]) -> None:
    """Refuse a name that differs from a taken one only in upper and lower case, as SQL reads it.

    Examples
    --------
    >>> check_free("events", "stream", ["events"])
    >>> check_free("Events", "stream", ["events"])
    Traceback (most recent call last):
    ...
    eddyline.errors.EngineError: 'Events' and 'events' are the same name in SQL; choose another \
name for the stream

    """
    for other in taken:
        if other != name and other.lower() == name.lower():
            raise EngineError(
                f"{name!r} and {other!r} are the same name in SQL; choose another name for the "
                f"{what}"
            )


def check_columns(name: str, columns: Sequence[str]) -> None:
    """Refuse columns that queries could not name."""
    folded = [column.lower() for column in columns]
    repeated = sorted({column for column in columns if folded.count(column.lower()) > 1})
    if repeated:
        raise EngineError(f"{name!r} has columns of the same name: {', '.join(repeated)}")
    for column in columns:
        if column.lower().startswith(RESERVED):
            raise EngineError(
                f"{name!r} has the column {column!r}; names that begin with {RESERVED} are "
                f"reserved: rename it"
            )


def read_schema(described: Mapping[str, Any]) -> StructType:
    """Return the schema that the catalogue describes.

    `StructType.fromJson` takes the collations of texts out of what it is given.
    """
    return StructType.fromJson(copy.deepcopy(dict(described)))


def check_schema(name: str, known: StructType, given: StructType) -> None:
    """Refuse a schema that differs from the one in the catalogue."""
    before = {column.name: column.dataType.simpleString() for column in known}
    now = {column.name: column.dataType.simpleString() for column in given}
    if before == now:
        return
    changed = [
        f"{column} {before.get(column, '(new)')} -> {now.get(column, '(gone)')}"
        for column in {**before, **now}
        if before.get(column) != now.get(column)
    ]
    raise EngineError(
        f"{name!r} has another schema than when the catalogue was written: "
        f"{', '.join(changed) or 'the order of its columns'}; give it the columns it had, or "
        f"open a new engine"
    )


def read_delay_us(name: str, schema: StructType, time: str | None, delay: str | None) -> int:
    """Return the allowed lateness of rows in microseconds; check the column with their time.

    Parameters
    ----------
    name, schema
        Name and schema of the stream.
    time
        Column with the event time, or None.
    delay
        Allowed lateness, for example `10 seconds`; needs `time`.

    """
    if time is None:
        if delay is not None:
            raise EngineError(f"stream {name!r}: a delay needs a time column; give time=")
        return 0
    types = {column.name: column.dataType for column in schema}
    if time not in types:
        raise EngineError(
            f"stream {name!r} has no column {time!r} for the time; it has {', '.join(types)}"
        )
    if not isinstance(types[time], TimestampType | TimestampNTZType):
        raise EngineError(
            f"stream {name!r}: the time {time!r} is {types[time].simpleString()}, not a timestamp; "
            f"cast it"
        )
    parsed = _DELAY.fullmatch(delay or "0 seconds")
    if parsed is None:
        raise EngineError(f'stream {name!r}: cannot read the delay {delay!r}; write "10 seconds"')
    return int(parsed[1]) * _UNIT_US[parsed[2]]


def read_keep_s(keep: str | None) -> float | None:
    """Return for how many seconds results are kept; None for any time.

    Examples
    --------
    >>> read_keep_s("7 days")
    604800.0
    >>> read_keep_s("a week")
    Traceback (most recent call last):
    ...
    eddyline.errors.EngineError: cannot read keep='a week'; write for how long results are to be \
kept, such as "7 days" or "12 hours"

    """
    if keep is None:
        return None
    parsed = _DELAY.fullmatch(keep) if isinstance(keep, str) else None
    if parsed is None or not int(parsed[1]):
        raise EngineError(
            f"cannot read keep={keep!r}; write for how long results are to be kept, such as "
            f'"7 days" or "12 hours"'
        )
    return int(parsed[1]) * _UNIT_US[parsed[2]] / 10**6


def read_idle_us(name: str, time: str | None, idle: str | None) -> int | None:
    """Return after which time without rows a stream counts as idle, in microseconds."""
    if idle is None:
        return None
    if time is None:
        raise EngineError(f"stream {name!r}: idle= needs a time column; give time=")
    parsed = _DELAY.fullmatch(idle)
    if parsed is None or int(parsed[1]) == 0:
        raise EngineError(f'stream {name!r}: cannot read idle={idle!r}; write "5 minutes"')
    return int(parsed[1]) * _UNIT_US[parsed[2]]
