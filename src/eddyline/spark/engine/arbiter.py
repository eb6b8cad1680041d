"""Spark's own filter as the judge of whether a query fails on the rows of a micro-batch.

The engine evaluates conditions in another order than Spark does, and shares functions among
queries, so it may meet an error that Spark would not. Before such an error counts, Spark filters
the micro-batch with the whole condition of the query. If Spark answers, its rows are the query's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.functions import Function
from eddyline.spark.engine.result_store import ResultStore
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo
from eddyline.sql.placeholders import STREAM

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class AloneRows:
    """The rows of a query that Spark filtered for it alone.

    Parameters
    ----------
    count
        Number of rows.
    files
        The files they were stored in, with their sizes; empty if they are only counted.

    """

    count: int
    files: Mapping[str, int]


class Arbiter:
    """Filters micro-batches as Spark does.

    Parameters
    ----------
    results
        Stores the rows.
    stream_named
        Returns a stream by name.
    functions
        The registered Python functions, by name.
    name_for_spark
        Returns the name under which a function is registered with Spark.

    """

    def __init__(
        self,
        results: ResultStore,
        stream_named: Callable[[str], StreamInfo],
        functions: Mapping[str, Function],
        name_for_spark: Callable[[str], str],
    ) -> None:
        self._results = results
        self._stream_named = stream_named
        self._functions = functions
        self._name_for_spark = name_for_spark

    def judge(self, df: DataFrame, batch: int, compiled: CompiledQuery) -> AloneRows:
        """Store the rows of a micro-batch that Spark's filter keeps for a query.

        Raises
        ------
        Exception
            What Spark raises, if the query fails on these rows.

        """
        from pyspark.sql import Observation

        for name in compiled.query.functions:  # a stream's session does not know later functions
            function = self._functions[name].spark_function
            df.sparkSession.udf.register(self._name_for_spark(name), function)
        stream = self._stream_named(compiled.query.stream)
        rows = df.filter(F.col(SOURCE) == stream.number).select(f"{stream.field}.*")
        if compiled.query.where:
            rows = _as_plain_columns(rows).alias(STREAM).filter(compiled.query.where)
        counted = Observation()
        rows = rows.observe(counted, F.count(F.lit(1)).alias("rows"))
        files = {}
        if compiled.is_stored:
            files = self._results.write_alone(batch, rows, compiled, stream)
        else:
            rows.write.format("noop").mode("overwrite").save()
        return AloneRows(counted.get["rows"], files)


def _as_plain_columns(rows: DataFrame) -> DataFrame:
    """Return rows of a struct column such that a filter on them runs as on a table of its own.

    Spark evaluates the IS NOT NULL that it infers from a filter before the rest of the filter, but
    only of plain columns. A filter on fields of a struct would fail on rows that such a test drops.
    No filter is pushed down below an observation.
    """
    return rows.observe("eddyline_arbiter", F.count(F.lit(1)).alias("rows"))
