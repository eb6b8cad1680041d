"""Checks of what is registered with an engine: names, schemas, event times and delays."""

from __future__ import annotations

import re

from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from eddyline.errors import EngineError

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


def check_name(name: str, what: str) -> None:
    """Raise if a stream, table, function or query cannot have this name."""
    if not isinstance(name, str) or (what != "query" and not _NAME.fullmatch(name)) or not name:
        raise EngineError(
            f"{name!r} cannot be the name of a {what}; use letters, digits and underscores, "
            f"beginning with a letter"
        )


def check_schema(name: str, known: StructType, given: StructType) -> None:
    """Raise if a schema is not the one in the catalogue."""
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
        f"{name!r} has another schema than in the catalogue: "
        f"{', '.join(changed) or 'the order of its columns'}; restore the columns, or open a new "
        f"engine"
    )


def read_delay_us(name: str, schema: StructType, time: str | None, delay: str | None) -> int:
    """Return how late a row may be; raise if the event-time column is not a timestamp."""
    if time is None:
        if delay is not None:
            raise EngineError(f"stream {name!r}: a delay needs an event-time column: time=...")
        return 0
    kinds = {column.name: column.dataType for column in schema}
    if time not in kinds:
        raise EngineError(
            f"stream {name!r} has no column {time!r} for the event time; it has {', '.join(kinds)}"
        )
    if not isinstance(kinds[time], TimestampType | TimestampNTZType):
        raise EngineError(
            f"stream {name!r}: the time {time!r} is {kinds[time].simpleString()}, not a timestamp; "
            f"cast it"
        )
    found = _DELAY.fullmatch(delay or "0 seconds")
    if found is None:
        raise EngineError(f'stream {name!r}: cannot read the delay {delay!r}; write "10 seconds"')
    return int(found[1]) * _UNIT_US[found[2]]
