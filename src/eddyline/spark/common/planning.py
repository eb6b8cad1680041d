"""A limit for the time that planning spends on Spark before the first row."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from eddyline.mesh import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

CANCEL_AGAIN_S = 0.1
#: Share of the time, and at most so many seconds, for cancelling a job and for what follows it.
ENDING_SHARE = 0.1
ENDING_S_MAX = 0.15


class OutOfTimeError(Exception):
    """Planning has used up its time."""


class PlanningBudget:
    """Counts the time since planning began, and cancels the Spark jobs that exceed it.

    Parameters
    ----------
    spark
        The session.
    seconds_max
        Limit for everything that is planned together. None: no limit. A little of it is kept for
        cancelling the last job.
    progress
        Called while a search for classes runs.

    Examples
    --------
    >>> budget = PlanningBudget(spark, 60)
    >>> budget.run(lambda: spark.range(3).count())
    3
    >>> 0 < budget.left_s() <= 60
    True

    """

    def __init__(
        self,
        spark: SparkSession,
        seconds_max: float | None,
        progress: Progress | None = None,
    ) -> None:
        self.progress = progress
        self._spark = spark
        self._seconds_max = seconds_max
        if seconds_max is not None:
            self._seconds_max = seconds_max - min(ENDING_SHARE * seconds_max, ENDING_S_MAX)
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since planning began."""
        return time.perf_counter() - self._began

    def left_s(self, share: float = 1.0) -> float | None:
        """Return a share of the time that is left; None if there is no limit."""
        if self._seconds_max is None:
            return None
        return max(0.0, share * (self._seconds_max - self.seconds))

    @property
    def is_over(self) -> bool:
        """Whether the time is used up."""
        return self.left_s() == 0.0

    def part(self, share: float) -> PlanningBudget:
        """Return a budget of its own for a part of the work: a share of the time that is left."""
        part = PlanningBudget(self._spark, None, self.progress)
        part._seconds_max = self.left_s(share)
        return part

    def run(self, compute: Callable[[], Result]) -> Result:
        """Return what a function computes on Spark, within the time that is left.

        Raises
        ------
        OutOfTimeError
            If it takes longer. Its jobs are cancelled.

        """
        left_s = self.left_s()
        if left_s is None:
            return compute()
        if left_s == 0.0:
            raise OutOfTimeError
        done, is_cancelled = threading.Event(), threading.Event()
        with _tagged_jobs(self._spark) as cancel:

            def watch() -> None:
                is_due = not done.wait(left_s)
                while is_due:  # again and again: a job may begin just after the others were ended
                    is_cancelled.set()
                    cancel()
                    is_due = not done.wait(CANCEL_AGAIN_S)

            watcher = threading.Thread(target=watch, name="eddyline-planning", daemon=True)
            watcher.start()
            try:
                return compute()
            except Exception as error:
                if is_cancelled.is_set():
                    raise OutOfTimeError from error
                raise
            finally:
                done.set()
                watcher.join()


@contextlib.contextmanager
def _tagged_jobs(spark: SparkSession) -> Iterator[Callable[[], object]]:
    """Tag the jobs of this thread; yields a function that cancels them."""
    tag = f"eddyline-planning-{uuid.uuid4().hex}"
    if hasattr(spark, "_jsparkSession"):
        # In a classic session `interruptTag` finds no jobs (Spark 4.3); the context's tags do.
        context = spark.sparkContext
        context.addJobTag(tag)
        try:
            yield lambda: context.cancelJobsWithTag(tag)
        finally:
            context.removeJobTag(tag)
        return
    spark.addTag(tag)
    try:
        yield lambda: spark.interruptTag(tag)
    finally:
        spark.removeTag(tag)
