"""What native conditions cost, from a clock that is read before and after each on sampled rows.

One Spark job evaluates all conditions on every row, one after the other, and reads the clock of the
JVM in between. Children of an array are evaluated in their order, and nothing in an array that is
not deterministic is moved, removed or evaluated once for two conditions. To time each condition in
jobs of its own takes a dozen of them (`docs/decisions/0024`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F

from eddyline.arrays import FloatArray
from eddyline.ordering.uncertain import CostRanges
from eddyline.spark.common.planning import PlanningBudget

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Costs of one pass may be wrong by this factor: most code is not compiled yet.
FIRST_FACTOR = 1.7
#: The same for several passes over each row, and what the clock itself cannot resolve.
FACTOR, RESOLUTION_US = 1.3, 0.05
#: Longest run of several passes, without the time that a job takes to begin, and that time.
CLOCK_S, BEGINNING_S = 0.35, 0.4
#: Share of the time that is left for a job at most.
JOB_SHARE = 0.9
COPIES = (4, 50)
#: By how much later passes are expected to be faster than the first one.
WARMING = 4.0
BLOCK_ROWS = 50
FIRST_BLOCKS = 4
#: An evaluation that takes longer, in multiples of the slowest of 20, was interrupted.
LONGEST = 2.0


def clocked(conditions: Sequence[Column]) -> Column:
    """Return an array: the time before each condition and its answer, then the time twice.

    Times are nanoseconds; an answer is 1 if the row passes. The last two times tell how long it
    takes to read the clock.
    """
    clock = _clock("nanoTime")
    # Spark evaluates parts that conditions have in common first, except within a CASE.
    always = F.rand(0) > 1e-12
    steps: list[Column] = []
    for condition in conditions:
        passes = F.when(always, F.coalesce(condition, F.lit(False))).otherwise(F.lit(False))
        steps += [clock, passes.cast("bigint")]
    return F.array(*steps, clock, clock)


def first_ranges(durations_ns: FloatArray) -> CostRanges:
    """Return ranges of costs from one pass over the rows, in the order they were evaluated in.

    The second half of them counts, and of it the fastest part: much of the code is compiled then.

    Parameters
    ----------
    durations_ns
        A line for each row: how long each condition took, and at last reading the clock.

    Examples
    --------
    >>> durations = np.full((800, 3), [5_100.0, 1_100.0, 100.0])
    >>> durations[:300] *= 20  # code that is not compiled yet
    >>> durations[500] = 4_000_000.0  # another program had its turn
    >>> first_ranges(durations)
    CostRanges(low_us=(2.941..., 0.588...), high_us=(8.55, 1.75))

    """
    later_ns = durations_ns[len(durations_ns) // 2 :]
    uninterrupted_ns = np.minimum(later_ns, LONGEST * np.quantile(later_ns, 0.95, axis=0))
    blocks = np.array_split(uninterrupted_ns, min(FIRST_BLOCKS, len(uninterrupted_ns)))
    return _ranges(np.min([block.mean(axis=0) for block in blocks], axis=0), FIRST_FACTOR)


def clock_again(
    sample: DataFrame, conditions: Sequence[Column], first_s: float, budget: PlanningBudget
) -> CostRanges | None:
    """Return ranges of costs from several passes over each row; None if too few were made.

    Of several passes over some rows the fastest counts: others may have been interrupted. Of all
    rows the second half counts: by then the JVM has compiled most of the code.

    Parameters
    ----------
    sample
        Sampled rows that Spark keeps.
    conditions
        The conditions.
    first_s
        How long one pass took.
    budget
        Limits the time.

    """
    left_s = budget.left_s()
    run_s = CLOCK_S if left_s is None else min(CLOCK_S, left_s / 2)
    copies = int(np.clip(WARMING * run_s / max(first_s, 1e-3), *COPIES))
    due_s = BEGINNING_S + run_s
    due_s = due_s if left_s is None else min(due_s, JOB_SHARE * left_s)
    # Where the clocks of two machines differ, too few rows are timed, or the budget ends the job.
    is_in_time = _clock("currentTimeMillis") < F.lit(int(1_000 * (time.time() + due_s)))
    block = (F.monotonically_increasing_id() / BLOCK_ROWS).cast("int")
    numbered = sample.coalesce(1).withColumn("block", block)
    copied = numbered.withColumn("copy", F.explode(F.sequence(F.lit(1), F.lit(copies))))
    timed = copied.select("block", "copy", F.when(is_in_time, clocked(conditions)).alias("clocked"))
    sums = [
        F.sum(_duration(F.col("clocked"), number, len(conditions)))
        for number in range(len(conditions) + 1)
    ]
    blocks = timed.groupBy("block", "copy").agg(F.count("clocked"), *sums)
    found = budget.run(blocks.collect)
    return ranges_of_blocks(np.array([list(row) for row in found if row[2] == BLOCK_ROWS], float))


def ranges_of_blocks(sums_ns: FloatArray) -> CostRanges | None:
    """Return ranges of costs from the time that blocks of rows took; None if there are too few.

    Parameters
    ----------
    sums_ns
        A line for each pass over a block: its number, the number of the pass, the rows, how long
        each condition took in all, and reading the clock.

    Examples
    --------
    >>> passes = [[block, copy, 50, 5e5 * copy, 1e5] for block in range(4) for copy in (2, 1)]
    >>> ranges_of_blocks(np.array(passes, float)).middle_us.round(1).tolist()
    [8.0]
    >>> ranges_of_blocks(np.array([]))

    """
    numbers = sorted({float(each[0]) for each in sums_ns})
    if not numbers:
        return None
    fastest_ns = [
        sums_ns[sums_ns[:, 0] == number][:, 3:].min(axis=0)
        for number in numbers[len(numbers) // 2 :]
    ]
    return _ranges(np.mean(fastest_ns, axis=0) / BLOCK_ROWS, FACTOR)


def durations(clocked: Column, conditions: int) -> list[Column]:
    """Return how long each condition took, and at last reading the clock, in nanoseconds."""
    return [_duration(clocked, number, conditions) for number in range(conditions + 1)]


def answers(clocked: Column, conditions: int) -> list[Column]:
    """Return the answer of each condition, which is never NULL."""
    return [clocked[2 * number + 1] == 1 for number in range(conditions)]


def _duration(clocked: Column, number: int, conditions: int) -> Column:
    """Return how long a condition took, in nanoseconds; one more: how long the clock did."""
    until = 2 * number + (1 if number == conditions else 2)
    return clocked[until] - clocked[2 * number]


def _clock(name: str) -> Column:
    return F.reflect(F.lit("java.lang.System"), F.lit(name)).cast("bigint")


def _ranges(row_ns: FloatArray, factor: float) -> CostRanges:
    """Return ranges around costs of a row, from times that include reading the clock."""
    cost_us = np.maximum((row_ns[:-1] - row_ns[-1]) / 1_000, RESOLUTION_US)
    return CostRanges.around(cost_us.tolist(), factor, RESOLUTION_US)
