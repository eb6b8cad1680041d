"""Counts the rows of every stream before any filter, for queries with windows of rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from eddyline.joins.arrivals import ArrivalClock
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.spark.state.arrived_rows import ARRIVAL
from eddyline.spark.state.counted_rows import CountedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class BatchCounts:
    """The rows of a micro-batch as they were counted.

    Parameters
    ----------
    streams
        By number of the stream.
    totals
        By name of the stream, its rows so far, this micro-batch included.

    """

    streams: Mapping[int, CountedRows] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)


class RowCounts:
    """Counts rows while some query has a window of rows.

    Parameters
    ----------
    streams
        The streams of the engine, in the order of their numbers.
    totals
        Rows counted so far, by name of the stream, as of the last finished micro-batch.

    """

    def __init__(self, streams: Sequence[StreamInfo], totals: Mapping[str, int]) -> None:
        self._streams = streams
        self._totals = dict(totals)

    @contextlib.contextmanager
    def counted(self, df: DataFrame) -> Iterator[tuple[DataFrame, BatchCounts]]:
        """Yield the rows of a micro-batch with `ARRIVAL`, read once, and their counts."""
        rows = df.withColumn(ARRIVAL, F.monotonically_increasing_id()).persist()
        try:
            found = (
                rows.groupBy(SOURCE, F.shiftright(ARRIVAL, 33))
                .agg(F.min(ARRIVAL), F.count("*"))
                .collect()
            )
            yield rows, self._to_counts([(row[0], row[2], row[3]) for row in found])
        finally:
            rows.unpersist()

    def _to_counts(self, found: Sequence[tuple[int, int, int]]) -> BatchCounts:
        """Return the counts, given stream, smallest id and number of rows of every partition."""
        arrived = 0
        streams: dict[int, CountedRows] = {}
        totals = dict(self._totals)
        for stream in self._streams:
            own = sorted(
                (first, count) for number, first, count in found if number == stream.number
            )
            offsets = [sum(count for _, count in own[:place]) for place in range(len(own))]
            count = sum(count for _, count in own)
            clock = ArrivalClock(totals.get(stream.name, 0), arrived, count)
            firsts = tuple(first for first, _ in own)
            streams[stream.number] = CountedRows(clock, firsts, tuple(offsets))
            totals[stream.name] = clock.before + count
            arrived += count
        return BatchCounts(streams, totals)

    def keep(self, totals: Mapping[str, int]) -> None:
        """Take over the totals of a finished micro-batch."""
        self._totals |= totals
