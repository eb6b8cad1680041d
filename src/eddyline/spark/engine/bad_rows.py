"""Finds the stored rows on which the SELECT of a query fails, in a bounded number of jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.result_part import ResultPart
from eddyline.spark.engine.result_store import FILE, INDEX, ResultStore
from eddyline.spark.engine.stream_info import StreamInfo

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROWS_MAX = 100_000
JOBS_MAX = 100
_VALUE_LENGTH_MAX = 200
_ROW_LENGTH_MAX = 1_000

Place = tuple[str, int]


@dataclass(frozen=True)
class BadRow:
    """A stored row on which a SELECT fails.

    Parameters
    ----------
    place
        Name of the file, and index in it.
    values
        Its values, for an error message.

    """

    place: Place
    values: str


class BadRowSearch:
    """Searches the rows of one query by halves.

    Parameters
    ----------
    results
        Has the stored rows.
    compiled, stream
        The query, and the stream that it reads.
    failure_of
        Computes frames; returns the error if that fails.

    """

    def __init__(
        self,
        results: ResultStore,
        compiled: CompiledQuery,
        stream: StreamInfo,
        failure_of: Callable[[Sequence[DataFrame]], Exception | None],
    ) -> None:
        self._results = results
        self._compiled = compiled
        self._stream = stream
        self._failure_of = failure_of

    def find(self, batch: int, record: BatchRecord) -> list[BadRow] | None:
        """Return all rows of a micro-batch that the query fails on; None if that takes too long."""
        query, parts = (self._compiled, self._stream), [ResultPart.of(batch, record)]
        stored = self._results.rows(*query, parts, with_places=True)
        places = sorted(
            (str(row["file"]), int(row["index"]))
            for row in stored.select("file", "index").limit(ROWS_MAX + 1).collect()
        )
        if len(places) > ROWS_MAX:
            return None
        bad: list[Place] = []
        jobs, pieces = 0, [places]
        while pieces:
            piece = pieces.pop()
            if not piece:
                continue
            jobs += 1
            if jobs > JOBS_MAX:
                return None
            within = _between(piece[0], piece[-1])
            if self._failure_of([self._results.results(*query, parts, within)]) is None:
                continue
            if len(piece) == 1:
                bad += piece
            else:
                middle = len(piece) // 2
                pieces += [piece[middle:], piece[:middle]]
        without_bad = [replace(part, excluded={self._compiled.number: bad}) for part in parts]
        if not bad or self._failure_of([self._results.results(*query, without_bad)]):
            return None
        first = self._results.rows(*query, parts, _between(bad[0], bad[0])).first()
        values = describe_values(first.asDict())
        return [BadRow(place, values if place == bad[0] else "") for place in bad]


def _between(first: Place, last: Place) -> Column:
    """Return the condition that a row is stored between two places, both included."""
    file, index = F.col(FILE), F.col(INDEX)
    behind = (file > first[0]) | ((file == first[0]) & (index >= first[1]))
    before = (file < last[0]) | ((file == last[0]) & (index <= last[1]))
    return behind & before


def describe_values(values: dict[str, Any]) -> str:
    """Return the values of a row for an error message, cut to a readable length.

    Examples
    --------
    >>> describe_values({"id": 7, "a": None})
    'id=7, a=None'
    >>> describe_values({"text": "x" * 1_000})
    "text='xxx...xxx... (1,002 characters)"

    """
    parts = []
    for name, value in values.items():
        text = repr(value)
        is_long = len(text) > _VALUE_LENGTH_MAX
        short = f"{text[:_VALUE_LENGTH_MAX]}... ({len(text):,} characters)" if is_long else text
        parts.append(f"{name}={short}")
    row = ", ".join(parts)
    return row if len(row) <= _ROW_LENGTH_MAX else f"{row[:_ROW_LENGTH_MAX]}..."
