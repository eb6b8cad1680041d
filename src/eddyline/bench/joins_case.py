"""A join of streams that an engine and Spark both run: streams in files, SQL, and Spark's chain."""

from __future__ import annotations

import itertools
import os
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

#: How late a row may be, on both sides.
DELAY = "1 second"
#: Column with the event time, in every stream.
TIME = "ts"


class Streams:
    """Streams in files: a folder for each, a file for each micro-batch.

    Parameters
    ----------
    folder
        Where the folders are.
    derived
        By stream, columns that are computed when it is read: SQL by name.
    kind
        "parquet", or "csv" without a header.

    """

    def __init__(
        self,
        folder: pathlib.Path,
        derived: Mapping[str, Mapping[str, str]] | None = None,
        kind: str = "parquet",
    ) -> None:
        self._folder = folder
        self._derived = derived or {}
        self._kind = kind
        self._schemas: dict[str, pa.Schema] = {}
        #: Rows of each stream.
        self.rows: dict[str, int] = {}

    def write(self, name: str, batches: Sequence[pa.Table]) -> None:
        """Write a stream; Spark reads its files in the order of the micro-batches."""
        own = self._folder / name
        own.mkdir(parents=True)
        for number, table in enumerate(batches):
            path = own / f"{number:04}.{self._kind}"
            if self._kind == "csv":
                csv.write_csv(table, path, csv.WriteOptions(include_header=False))
            else:
                pq.write_table(table, path)
            os.utime(path, (number, number))  # Spark reads the oldest file first
        self._schemas[name] = batches[0].schema
        self.rows[name] = sum(table.num_rows for table in batches)

    def read(self, spark: Any, name: str) -> Any:
        """Return a stream that takes one file in each micro-batch."""
        from pyspark.sql.pandas.types import from_arrow_schema

        reader = spark.readStream.format(self._kind).schema(from_arrow_schema(self._schemas[name]))
        rows = reader.option("maxFilesPerTrigger", 1).load(str(self._folder / name))
        derived = [f"{sql} AS {column}" for column, sql in self._derived.get(name, {}).items()]
        return rows.selectExpr("*", *derived)


@dataclass(frozen=True)
class Side:
    """A stream in the FROM of a join.

    Parameters
    ----------
    alias, stream
        Its name in the join, and the stream.
    columns
        What the result has of it.
    window_ms
        How much older than the youngest row of a combination its row may be, exclusive.
    condition
        Which of its rows are joined, as SQL with the alias.

    """

    alias: str
    stream: str
    columns: tuple[str, ...]
    window_ms: int
    condition: str | None = None


@dataclass(frozen=True)
class JoinCase:
    """A join by equality, in windows of time between all pairs of streams.

    Parameters
    ----------
    name
        What it is called in metrics.
    sides
        The streams, in the order in which Spark's chain joins them.
    equal
        Pairs of columns that are equal, each with the alias of its stream.

    Examples
    --------
    >>> sides = [Side("a", "lights", ("lux",), 500), Side("b", "rooms", ("id",), 2000, "b.id > 3")]
    >>> case = JoinCase("lit rooms", sides, [("a.room", "b.id")])
    >>> print(case.sql)
    SELECT a.lux AS a_lux, b.id AS b_id FROM lights a [RANGE 500 MILLISECONDS], rooms b \
[RANGE 2000 MILLISECONDS] WHERE a.room = b.id AND b.id > 3
    >>> print(case.condition_of(1))
    a_room = b_id AND b_ts > a_ts - INTERVAL 2000 MILLISECONDS AND b_ts < a_ts + INTERVAL 500 \
MILLISECONDS

    """

    name: str
    sides: Sequence[Side]
    equal: Sequence[tuple[str, str]]

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that are read, each once."""
        return tuple(dict.fromkeys(side.stream for side in self.sides))

    @property
    def sql(self) -> str:
        """The query as an engine takes it."""
        items = [
            f"{s.alias}.{column} AS {s.alias}_{column}" for s in self.sides for column in s.columns
        ]
        sources = [f"{s.stream} {s.alias} [RANGE {s.window_ms} MILLISECONDS]" for s in self.sides]
        conditions = [f"{one} = {other}" for one, other in self.equal]
        conditions += [side.condition for side in self.sides if side.condition]
        return (
            f"SELECT {', '.join(items)} FROM {', '.join(sources)} WHERE {' AND '.join(conditions)}"
        )

    def condition_of(self, number: int) -> str:
        """Return the condition by which Spark's chain joins a stream with those before it.

        One event time, the first stream's, may be left in a chain. Windows against the others are
        compared as numbers.
        """
        before, own = self.sides[:number], self.sides[number]
        first, alias = before[0].alias, own.alias
        seen = {side.alias for side in before}
        terms = [
            f"{_flat(one)} = {_flat(other)}"
            for one, other in self.equal
            if alias in (_alias(one), _alias(other))
            and {_alias(one), _alias(other)} <= seen | {alias}
        ]
        terms += [
            f"{alias}_ts > {first}_ts - INTERVAL {own.window_ms} MILLISECONDS",
            f"{alias}_ts < {first}_ts + INTERVAL {before[0].window_ms} MILLISECONDS",
        ]
        for other in before[1:]:
            terms += [
                f"{other.alias}_us - {alias}_us < {1000 * own.window_ms}",
                f"{alias}_us - {other.alias}_us < {1000 * other.window_ms}",
            ]
        return " AND ".join(terms)

    def chain(self, spark: Any, streams: Streams) -> Any:
        """Return the join as a chain of Spark's own."""
        from pyspark.sql import functions as F

        chain: Any = None
        for number, side in enumerate(self.sides):
            own = self._side(streams.read(spark, side.stream), side)
            if chain is None:
                chain = own
            else:
                chain = chain.join(own, F.expr(self.condition_of(number))).drop(f"{side.alias}_ts")
        return chain.select(*[f"{s.alias}_{column}" for s in self.sides for column in s.columns])

    def _side(self, rows: Any, side: Side) -> Any:
        """Return a stream with the columns that the chain needs of it, named after its alias."""
        own = rows.withWatermark(TIME, DELAY).alias(side.alias)
        if side.condition:
            own = own.filter(side.condition)
        keys = [
            name.partition(".")[2]
            for name in itertools.chain(*self.equal)
            if _alias(name) == side.alias
        ]
        columns = dict.fromkeys([*side.columns, *keys, TIME])
        return own.selectExpr(
            *[f"{side.alias}.{column} AS {side.alias}_{column}" for column in columns],
            f"unix_micros({side.alias}.{TIME}) AS {side.alias}_us",
        )


def _alias(name: str) -> str:
    return name.partition(".")[0]


def _flat(name: str) -> str:
    return name.replace(".", "_")
