"""What only Spark can decide about a join of streams: types of keys, and whether they may fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql.types import DataType, StructType

from eddyline.errors import LookupTableError, QueryError
from eddyline.spark.common.lookup_keys import common_type
from eddyline.spark.engine.compared_key import (
    ComparedKey,
    Kind,
    RoleBound,
    is_whole,
    kind_of,
    may_be_nan,
)
from eddyline.spark.engine.compiled_join import CompiledJoin, RoleField, RoleKey
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.expressions import StreamExpressions
from eddyline.spark.engine.guards import is_null
from eddyline.spark.engine.join_key import JoinKey
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.sql.placeholders import display_text
from eddyline.sql.query import JoinSpec
from eddyline.sql.specs import BoundSpec, KeyText

#: Largest number of streams in one query.
STREAMS_MAX = 10


class JoinCompiler:
    """Compiles the joins of streams in queries.

    Parameters
    ----------
    expressions_over
        Returns what analyses expressions over a stream.
    stream_of
        Returns a stream by name.
    compile_part
        Checks the conditions on one stream, given as a query over it.

    """

    def __init__(
        self,
        expressions_over: Callable[[StreamInfo], StreamExpressions],
        stream_of: Callable[[str], StreamInfo],
        compile_part: Callable[[CompiledQuery], CompiledQuery],
    ) -> None:
        self._expressions_over = expressions_over
        self._stream_of = stream_of
        self._compile_part = compile_part

    def compile(self, compiled: CompiledQuery) -> CompiledQuery:
        """Return a query over several streams with its join."""
        spec = compiled.query.join
        assert spec is not None
        if len(spec.parts) > STREAMS_MAX:
            raise QueryError(
                f"it joins {len(spec.parts)} streams; at most {STREAMS_MAX} can be joined"
            )
        streams = [self._stream_of(part.stream) for part in spec.parts]
        windows_us, windows_rows = _windows(spec, streams)
        parts = tuple(
            self._compile_part(CompiledQuery(0, compiled.name, part, "part")) for part in spec.parts
        )
        equalities = self._equalities(spec, streams)
        fields = tuple(_role_field(spec, streams, position) for position in range(len(streams)))
        bounds = tuple(bound for own in spec.bounds if (bound := self._bound(own, streams)))
        join = CompiledJoin(parts, equalities, windows_us, windows_rows, bounds, fields)
        return compiled.changed(join=join)

    def _equalities(
        self, spec: JoinSpec, streams: Sequence[StreamInfo]
    ) -> tuple[frozenset[RoleKey], ...]:
        """Return sets of equal keys, closed under transitivity among keys of the same type."""
        sets: list[set[RoleKey]] = []
        for pair in spec.equalities:
            types = [self._type_of(key, streams[key.part]) for key in pair]
            text = " = ".join(display_text(key.text) for key in pair)
            try:
                compared_as = common_type(types[0], types[1], text, display_text(pair[0].text))
            except LookupTableError:
                raise QueryError(
                    f"the keys {text} are {types[0].simpleString()} and {types[1].simpleString()}, "
                    f"which cannot be joined; cast them so that both are the same number, text, "
                    f"date or timestamp, without a collation"
                ) from None
            united = {RoleKey(key.part, JoinKey(key.text, compared_as)) for key in pair}
            for other in [other for other in sets if other & united]:
                sets.remove(other)
                united |= other
            sets.append(united)
        return tuple(frozenset(equal) for equal in sets)

    def _bound(self, spec: BoundSpec, streams: Sequence[StreamInfo]) -> RoleBound | None:
        """Return a comparison in numbers; None if only Spark can evaluate it."""
        found = [self._safe_type(key, streams[key.part]) for key in (spec.low, spec.high)]
        types = [data_type for data_type in found if data_type is not None]
        if len(types) < len(found):
            return None
        kinds = {kind_of(data_type) for data_type in types}
        kind = kinds.pop()
        if kind is None or kinds or (spec.is_interval and kind is not Kind.TIMESTAMP):
            return None
        if spec.nan_fits and any(map(may_be_nan, types)):
            return None
        low, high = ComparedKey(spec.low.text, kind), ComparedKey(spec.high.text, kind)
        # Of whole numbers, less is at most one less.
        is_less = spec.is_strict and spec.offset.is_integer() and all(map(is_whole, types))
        offset = spec.offset - 1 if is_less else spec.offset
        return RoleBound(spec.low.part, low, spec.high.part, high, offset)

    def _type_of(self, key: KeyText, stream: StreamInfo) -> DataType:
        data_type = self._safe_type(key, stream)
        if data_type is None:
            raise QueryError(
                f"the key {display_text(key.text)} could fail on some rows; write it so that it "
                f"cannot (try_cast, try_divide), or add it as a column of the stream"
            )
        return data_type

    def _safe_type(self, key: KeyText, stream: StreamInfo) -> DataType | None:
        """Return the type of an expression over a stream; None if it could fail on a row."""
        expressions = self._expressions_over(stream)
        if expressions.could_fail(is_null(key.text)):
            return None
        return expressions.type_of(key.text)


def _role_field(spec: JoinSpec, streams: Sequence[StreamInfo], position: int) -> RoleField:
    stream, source = streams[position], spec.parts[position].stream_source
    occurrence = [other.number for other in streams[:position]].count(stream.number)
    schema = StructType([f for f in stream.schema if f.name in source.columns])
    return RoleField(source.alias, f"s{stream.number}_{occurrence}", schema)


def _windows(
    spec: JoinSpec, streams: Sequence[StreamInfo]
) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """Return for each role its window of time and its window of rows; every role has one."""
    windows = [part.window for part in spec.parts]
    rows = tuple(w.size if w is not None and w.unit == "rows" else None for w in windows)
    is_timed = any(window_us is not None for window_us in spec.windows_us)
    for stream, window_us, size in zip(streams, spec.windows_us, rows, strict=True):
        if stream.time is None and (is_timed or size is None):
            reason = "rows are joined by time" if size is None else "other streams by time"
            raise QueryError(
                f"stream {stream.name!r} has no event time, and {reason}; register it with "
                f"engine.stream({stream.name!r}, df, time=...), or give every stream a window of "
                f"rows, as in {stream.name} [ROWS 1000]"
            )
        if window_us is None and size is None:
            raise QueryError(
                f"nothing says how long rows of {stream.name!r} are to be kept; add a window, for "
                f"example WINDOW 30 SECONDS"
            )
    return spec.windows_us, rows
