"""After a failed micro-batch: which conditions or functions made it fail.

Conditions are evaluated apart from Python, functions in jobs that call nothing else. Both are
searched by halves, so that few of many are found in few jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F

from eddyline.spark.engine.causes import first_cause, is_worker_death
from eddyline.spark.engine.planner import BatchPlan, make_probe
from eddyline.spark.engine.stream_info import SOURCE, StreamInfo

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Part = TypeVar("Part")


def failing_parts(
    parts: Sequence[Part], failure_of: Callable[[Sequence[Part]], Exception | None]
) -> dict[Part, Exception]:
    """Return the parts that fail by themselves, with the error of each.

    Parameters
    ----------
    parts
        What may fail.
    failure_of
        Tries some of the parts together; returns the error if they fail.

    Examples
    --------
    >>> tried = []
    >>> def failure_of(parts):
    ...     tried.append(len(parts))
    ...     return ValueError("seven") if 7 in parts else None
    >>> failing_parts(range(16), failure_of), tried
    ({7: ValueError('seven')}, [16, 8, 4, 4, 2, 2, 1, 1, 8])

    """
    error = failure_of(parts) if len(parts) else None
    if error is None:
        return {}
    if len(parts) == 1:
        return {parts[0]: error}
    middle = len(parts) // 2
    return failing_parts(parts[:middle], failure_of) | failing_parts(parts[middle:], failure_of)


class FaultSearch:
    """Finds the queries at fault in a micro-batch that failed.

    Parameters
    ----------
    streams
        In the order of their numbers.
    display_text
        Returns an expression as its author would write it.
    raise_if_stopping
        Called with each error; raises it if the run is being stopped.

    """

    def __init__(
        self,
        streams: Sequence[StreamInfo],
        display_text: Callable[[str], str],
        raise_if_stopping: Callable[[BaseException], None],
    ) -> None:
        self._streams = streams
        self._display_text = display_text
        self._raise_if_stopping = raise_if_stopping

    def find(self, df: DataFrame, plan: BatchPlan) -> dict[int, str]:
        """Return the errors of the queries at fault, by number; empty if none is."""
        return self._failing_conditions(df, plan) or self._deadly_functions(df, plan)

    def suspects(self, plan: BatchPlan, error: BaseException) -> dict[int, str]:
        """Return the queries that may be at fault if none could be found, with an error for each.

        After the death of a worker: all that call a Python function.
        """
        if not is_worker_death(error):
            return {}
        return {
            number: (
                f"a Python worker ended while its functions "
                f"({', '.join(compiled.query.functions)}) were called with those of other queries, "
                f"and again while they were called alone. Correct them, then resume the query"
            )
            for number, compiled in plan.queries.items()
            for own in compiled.filters()
            if any(spec.function is not None for spec in own.query.predicates)
        }

    def _failing_conditions(self, df: DataFrame, plan: BatchPlan) -> dict[int, str]:
        failures: dict[int, str] = {}
        for stream in self._streams:
            rows = df.filter(F.col(SOURCE) == stream.number)

            def failure_of(
                texts: Sequence[str], rows: DataFrame = rows, stream: StreamInfo = stream
            ) -> Exception | None:
                return self._failure_of(rows, [stream.expression(text) for text in texts])

            texts = [text for number, text in plan.evaluated if number == stream.number]
            failing = failing_parts(texts, failure_of)
            if failing:
                unreadable = self._failure_of(rows, [F.lit(1)])
                if unreadable is not None:
                    raise unreadable
            for text, error in failing.items():
                said = self._display_text(first_cause(error))
                failures |= dict.fromkeys(plan.evaluated[stream.number, text], said)
        return failures

    def _deadly_functions(self, df: DataFrame, plan: BatchPlan) -> dict[int, str]:
        """Return the errors of queries that call a function which ends its worker."""

        def failure_of(keys: Sequence[tuple[int, str]]) -> Exception | None:
            return self._failure_of(df, [make_probe(plan.eddies, tuple(keys))(*plan.crossing)])

        failures: dict[int, str] = {}
        for stream, key in failing_parts(list(plan.functions), failure_of):
            said = (
                f"the function {plan.functions[stream, key]!r} ended its Python worker: it called "
                f"os._exit, crashed, used up the memory, or did not react to its time limit. "
                f"Correct it, then resume the query"
            )
            for number, compiled in plan.queries.items():
                for own in compiled.filters():
                    is_user = any(spec.key == key for spec in own.query.predicates)
                    if is_user and own.query.stream == self._streams[stream].name:
                        failures.setdefault(number, said)
        return failures

    def _failure_of(self, df: DataFrame, columns: Sequence[Column]) -> Exception | None:
        """Return the error of computing some columns; None if it succeeds."""
        try:
            df.select(*columns).write.format("noop").mode("overwrite").save()
        except Exception as error:
            self._raise_if_stopping(error)
            return error
        return None
