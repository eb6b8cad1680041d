"""Computes the results of a micro-batch before they count, where computing them could fail.

A query's SELECT runs when its result is read (`docs/decisions/0009`). One that could fail on a row
is therefore tried in the micro-batch that brings the row: a row on which it fails is left out of
its results, so that everything else stays readable.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from eddyline.errors import TimeLimitError
from eddyline.spark.engine.bad_rows import BadRowSearch
from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.causes import first_cause, is_worker_death
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.fault_search import failing_parts
from eddyline.spark.engine.result_part import ResultPart
from eddyline.spark.engine.result_store import QUERIES, ResultStore
from eddyline.spark.engine.stream_info import StreamInfo

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ResultTrial:
    """Tries and counts the results of one micro-batch after another.

    Parameters
    ----------
    results
        Has the stored rows.
    stream_named
        Returns a stream by name.
    display_text
        Returns an expression as its author would write it.
    raise_if_stopping
        Called with each error; raises it if the run is being stopped.

    """

    def __init__(
        self,
        results: ResultStore,
        stream_named: Callable[[str], StreamInfo],
        display_text: Callable[[str], str],
        raise_if_stopping: Callable[[BaseException], None],
    ) -> None:
        self._results = results
        self._stream_named = stream_named
        self._display_text = display_text
        self._raise_if_stopping = raise_if_stopping

    def run(
        self, batch: int, queries: Mapping[int, CompiledQuery], record: BatchRecord
    ) -> dict[int, str]:
        """Try all results that could fail, then count those that must be counted.

        Changes the counts and the excluded rows of the record; returns the errors of queries that
        failed on a row.
        """
        return self._try_all(batch, queries, record) | self._count(batch, queries, record)

    # --- trying ------------------------------------------------------------------------------

    def _try_all(
        self, batch: int, queries: Mapping[int, CompiledQuery], record: BatchRecord
    ) -> dict[int, str]:
        tried = [n for n in record.counts if queries[n].select_may_fail and queries[n].is_stored]

        def failure_of(numbers: Sequence[int]) -> Exception | None:
            frames = self._trials(batch, [queries[n] for n in numbers], record)
            return self._failure_of(frames)

        failures = {}
        for number, error in failing_parts(tried, failure_of).items():
            failures[number] = self._exclude(batch, queries[number], record, error)
        return failures

    def _trials(
        self, batch: int, queries: Sequence[CompiledQuery], record: BatchRecord
    ) -> list[DataFrame]:
        """Return frames whose computation fails if the result of one of the queries does."""
        if len(queries) == 1:
            return [self._result(batch, queries[0], record)]
        together: dict[str, dict[str, list[int]]] = {}
        frames = []
        for compiled in queries:
            query = compiled.query
            is_whole = compiled.select_calls_python or not query.is_row_for_row
            is_whole |= compiled.join is not None  # its rows are combinations
            is_whole |= query.has_lateral_aliases  # an item does not stand for itself
            if not is_whole and compiled.number not in record.alone:
                users = together.setdefault(query.stream, {})
                for text in query.computed:
                    users.setdefault(text, []).append(compiled.number)
            else:
                frames.append(self._result(batch, compiled, record))
        for name, users in together.items():
            stream = self._stream_named(name)
            columns = [
                F.when(
                    F.arrays_overlap(QUERIES, F.array(*map(F.lit, numbers))),
                    stream.expression(text),
                )
                for text, numbers in users.items()
            ]
            frames.append(
                self._results.shared_rows(ResultPart.of(batch, record), stream).select(*columns)
            )
        return frames

    def _result(self, batch: int, compiled: CompiledQuery, record: BatchRecord) -> DataFrame:
        stream = self._stream_named(compiled.query.stream)
        return self._results.results(compiled, stream, [ResultPart.of(batch, record)])

    def _failure_of(self, frames: Sequence[DataFrame]) -> Exception | None:
        """Return the error of computing some frames; None if it succeeds."""
        try:
            for frame in frames:
                names = [f"c{number}" for number in range(len(frame.columns))]
                frame.toDF(*names).write.format("noop").mode("overwrite").save()
        except Exception as error:
            self._raise_if_stopping(error)
            return error
        return None

    def _exclude(
        self, batch: int, compiled: CompiledQuery, record: BatchRecord, error: Exception
    ) -> str:
        """Leave out the rows that a query fails on, or all rows; return its error."""
        number = compiled.number
        said = self._display_text(first_cause(error))
        if is_worker_death(error):
            said = f"one of its functions ({', '.join(compiled.query.functions)}) ended its worker"
        stream = self._stream_named(compiled.query.stream)
        search = BadRowSearch(self._results, compiled, stream, self._failure_of)
        is_slow = TimeLimitError.__name__ in said  # every job of the search would take as long
        bad_rows = None if is_slow else search.find(batch, record)
        if bad_rows is None:
            del record.counts[number]
            return (
                f"its result cannot be computed: {said}. None of the rows of micro-batch {batch} "
                f"are in its results: those at fault could not be told from the others in "
                f"reasonable time"
            )
        record.excluded[number] = [row.place for row in bad_rows]
        record.counts[number] -= len(bad_rows)
        if not record.counts[number]:
            del record.counts[number]
        more = f" (and on {len(bad_rows) - 1} more)" if len(bad_rows) > 1 else ""
        return (
            f"its result cannot be computed: {said}, on the row {bad_rows[0].values}{more}. Its "
            f"results are without such rows"
        )

    # --- counting ----------------------------------------------------------------------------

    def _count(
        self, batch: int, queries: Mapping[int, CompiledQuery], record: BatchRecord
    ) -> dict[int, str]:
        """Count the results of queries in which a matching row is not exactly one result."""
        numbers = [n for n in record.counts if not queries[n].query.is_row_for_row]
        if not numbers:
            return {}
        results = {n: self._result(batch, queries[n], record) for n in numbers}
        try:
            counts, failures = _count_all(results), dict[int, str]()
        except Exception as error:
            self._raise_if_stopping(error)
            counts, failures = _count_each(results)
        for number in numbers:
            record.counts[number] = counts.get(number, 0)
            if not record.counts[number]:
                del record.counts[number]
        return failures


def _count_all(results: Mapping[int, DataFrame]) -> dict[int, int]:
    """Count the rows of several results in one job."""
    numbered = [frame.select(F.lit(number).alias("number")) for number, frame in results.items()]
    union = functools.reduce(lambda one, other: one.unionAll(other), numbered)
    return {row["number"]: row["count"] for row in union.groupBy("number").count().collect()}


def _count_each(results: Mapping[int, DataFrame]) -> tuple[dict[int, int], dict[int, str]]:
    """Count the rows of each result by itself; return counts, and the errors of those that fail."""
    counts: dict[int, int] = {}
    failures: dict[int, str] = {}
    for number, frame in results.items():
        try:
            counts |= _count_all({number: frame})
        except Exception as error:
            failures[number] = f"its result cannot be computed: {first_cause(error)}"
    return counts, failures
