"""How long native conditions take, measured by running them over copies of sampled rows."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F

from eddyline.ordering.uncertain import CostRanges
from eddyline.spark.common.planning import OutOfTimeError, PlanningBudget

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COPY = "__eddyline_copy"
TIMING_ROWS_MAX = 200_000
TIMING_SECONDS = 0.04
TIMING_ROUNDS = 2
TIMING_ROUNDS_UNLIMITED = 4
RESOLUTION_S = 0.005  # shorter differences between two jobs mean nothing
#: Shortest and longest run of a trial, without the fixed time of a job.
TRIAL_SECONDS = (0.05, 0.5)
#: Rows of a run where the time allows it.
TRIAL_ROWS = 200_000
TRIAL_ROUNDS = 6
TRIAL_ROUNDS_MIN = 3
#: Copies of the longer of two runs that tell what a row costs.
PROBE_COPIES = 5
#: Gain of the last way from which two rounds are enough.
CLEAR_GAIN = 0.15


class _Runs:
    """Runs conditions over copies of sampled rows."""

    def __init__(self, sample: DataFrame, budget: PlanningBudget) -> None:
        self._sample = sample
        self._budget = budget

    def over(self, copies: int) -> DataFrame:
        """Return so many copies of the rows, in one task: such a job begins and ends fast."""
        numbers = F.sequence(F.lit(1), F.lit(copies))
        many = self._sample.coalesce(1).withColumn(COPY, F.explode(numbers)).drop(COPY)
        # Spark would push a filter down to the rows that are copied, but not below one that is not
        # deterministic. (It would remove `rand() >= 0`.)
        return many.filter(F.rand(0) > 1e-12)

    def counted(self, df: DataFrame) -> DataFrame:
        """Return the number of rows of a DataFrame; run several times, it is planned once."""
        return df.agg(F.count(F.lit(1)))

    def seconds(self, counted: DataFrame) -> float:
        """Return how long it takes to run what `counted` returned."""
        began = time.perf_counter()
        self._budget.run(counted.collect)
        return time.perf_counter() - began


@dataclass(frozen=True)
class TimedConditions:
    """The cost of each condition by itself.

    Parameters
    ----------
    cost_us
        In microseconds a row.
    is_complete
        Whether every condition was timed as often as it should be. Where it was not, costs may be
        far off.
    ranges
        Where a clock was read between the conditions: how far off they may be.

    """

    cost_us: tuple[float, ...]
    is_complete: bool
    ranges: CostRanges | None = None


def time_conditions(
    sample: DataFrame,
    conditions: Sequence[Column],
    rows: int,
    budget: PlanningBudget | None = None,
) -> TimedConditions:
    """Return the cost of each condition, from runs over the sample.

    Runs of all conditions together tell how many copies of the sample make them stand out from the
    fixed time of a job. Over these each is run by itself, in turn with the others. Without a limit,
    those that are much cheaper are run again over more copies; with one, they count as cheap as the
    runs can tell. What was not timed when the time is up counts as average.

    Parameters
    ----------
    sample, rows
        Sampled rows, and their number.
    conditions
        The conditions.
    budget
        Limits the time. None: no limit.

    """
    if not rows:
        return TimedConditions((1.0,) * len(conditions), False)
    budget = budget or PlanningBudget(sample.sparkSession, None)
    is_limited = budget.left_s() is not None
    rounds = TIMING_ROUNDS if is_limited else TIMING_ROUNDS_UNLIMITED
    runs = _Runs(sample, budget)
    cost_us: dict[int, float] = {}
    pending, is_complete = list(range(len(conditions))), False
    with contextlib.suppress(OutOfTimeError):
        together_s = _seconds_together(runs, conditions)
        copies = _copies(1, len(conditions), together_s, rows)
        while pending:
            df = runs.over(copies)
            unfiltered = runs.counted(df)
            filtered = {each: runs.counted(df.filter(conditions[each])) for each in pending}
            nothing, spent = float("inf"), dict.fromkeys(pending, float("inf"))
            for _ in range(rounds):  # the first time, code is generated
                nothing = min(nothing, runs.seconds(unfiltered))
                for condition in pending:
                    spent[condition] = min(spent[condition], runs.seconds(filtered[condition]))
            for condition in pending:
                net_s = max(spent[condition] - nothing, RESOLUTION_S)
                cost_us[condition] = net_s * 1e6 / (copies * rows)
            is_complete = True
            pending = [each for each in pending if spent[each] - nothing < TIMING_SECONDS]
            if is_limited or copies * rows >= TIMING_ROWS_MAX or not pending:
                break
            slowest_s = max(spent[each] - nothing for each in pending)
            copies = max(2 * copies, _copies(copies, 1, slowest_s, rows))
    average = sum(cost_us.values()) / len(cost_us) if cost_us else 1.0
    costs = tuple(cost_us.get(number, average) for number in range(len(conditions)))
    return TimedConditions(costs, is_complete)


def _seconds_together(runs: _Runs, conditions: Sequence[Column]) -> float:
    """Return how long all conditions take over the sample, without the fixed time of a job."""
    df = runs.over(1)
    unfiltered = runs.counted(df)
    together = df.agg(*[F.count_if(condition) for condition in conditions])
    nothing, spent = float("inf"), float("inf")
    for _ in range(TIMING_ROUNDS):
        nothing = min(nothing, runs.seconds(unfiltered))
        spent = min(spent, runs.seconds(together))
    return spent - nothing


def _copies(copies: int, conditions: int, seconds: float, rows: int) -> int:
    """Return over how many copies of the sample each condition takes long enough, or nearly.

    Parameters
    ----------
    copies, conditions, seconds
        So many conditions took so long together, over so many copies.
    rows
        Of the sample.

    """
    factor = 1.5 * conditions * TIMING_SECONDS / max(seconds, RESOLUTION_S)
    return max(1, min(round(copies * factor), TIMING_ROWS_MAX // rows))


#: A way to filter a DataFrame.
Way = Callable[["DataFrame"], "DataFrame"]


@dataclass(frozen=True)
class TimedTrial:
    """Several ways to filter the same rows, timed.

    Parameters
    ----------
    rows
        Rows of each run, copies included.
    seconds
        Shortest run of each way. The fixed time of a job is part of all of them, which makes the
        differences look a little smaller than they are.
    first_seconds
        First run of each way: code that has just been generated is slow, and that of a mesh is
        larger. A query has new code, too.
    rounds
        Number of times that each was run, in turn.

    """

    rows: int
    seconds: Mapping[str, float]
    first_seconds: Mapping[str, float] = field(default_factory=dict)
    rounds: int = 0

    def us(self, way: str) -> float:
        """Return the time of a row."""
        return self.seconds[way] * 1e6 / self.rows

    def with_equal_code(self, ways: Sequence[str]) -> TimedTrial:
        """Return the trial with the same time for new code for some ways, the shortest of them.

        Their code has the same size, but the first one to run prepares the JVM for the others.

        Examples
        --------
        >>> trial = TimedTrial(1_000, {"a": 1.0, "b": 0.8}, {"a": 1.1, "b": 1.5}, 3)
        >>> trial.winner(0.03, 2_000), trial.with_equal_code(["a", "b"]).winner(0.03, 2_000)
        ('a', 'b')

        """
        timed = [way for way in ways if way in self.first_seconds]
        new_code_s = min((self.first_seconds[w] - self.seconds[w] for w in timed), default=0.0)
        first = {way: self.seconds[way] + new_code_s for way in timed}
        return dataclasses.replace(self, first_seconds={**self.first_seconds, **first})

    def winner(self, gain_min: float, query_rows: float | None = None) -> str:
        """Return the fastest way; one that comes later must be faster by a share of the time.

        Parameters
        ----------
        gain_min
            That share.
        query_rows
            Rows of the query. None: so many that the time until new code is fast does not count.

        Examples
        --------
        >>> trial = TimedTrial(1_000, {"order": 1.0, "mesh": 0.8}, {"order": 1.1, "mesh": 2.0}, 3)
        >>> trial.winner(0.03), trial.winner(0.03, 2_000), trial.winner(0.03, 20_000)
        ('mesh', 'order', 'mesh')

        """
        runs = 1.0 if query_rows is None else query_rows / self.rows
        costs = {way: seconds * runs for way, seconds in self.seconds.items()}
        if query_rows is not None:
            for way, first_s in self.first_seconds.items():
                costs[way] += max(0.0, first_s - self.seconds[way])
        best, *others = costs
        for way in others:
            if costs[way] < (1 - gain_min) * costs[best]:
                best = way
        return best

    @property
    def is_enough(self) -> bool:
        """Whether there were enough rounds to compare anything.

        The first round is for generating code. After the second, a large gain of the last way is
        beyond doubt.
        """
        if self.rounds >= TRIAL_ROUNDS_MIN:
            return True
        return self.rounds > 1 and self.winner(CLEAR_GAIN) == list(self.seconds)[-1]


def time_ways(
    sample: DataFrame,
    rows: int,
    ways: Mapping[str, Way],
    expected_us: float | None,
    budget: PlanningBudget,
    gain_min: float,
) -> TimedTrial:
    """Time several ways to filter in turn, over copies of rows that they were not made from.

    Parameters
    ----------
    sample, rows
        The rows, and their number.
    ways
        The ways to filter them, the most elaborate one last.
    expected_us
        Cost of a row: tells how many copies are needed. None: found by running the first way.
    budget
        Limits the time.
    gain_min
        Share of the time by which a later way must be faster. If the last one is, three rounds
        are enough.

    """
    left_s = budget.left_s(0.5 / (TRIAL_ROUNDS_MIN * len(ways)))  # half of it is for fixed times
    run_s = float(np.clip(TRIAL_SECONDS[1] if left_s is None else left_s, *TRIAL_SECONDS))
    runs = _Runs(sample, budget)
    trial = TimedTrial(rows, dict.fromkeys(ways, float("inf")))
    new_code_s = 0.0
    with contextlib.suppress(OutOfTimeError):
        if expected_us is None:
            way = next(iter(ways.values()))
            expected_us, new_code_s = _probe(runs, rows, way)
        wanted = min(run_s * 1e6 / max(expected_us, 1e-3), TRIAL_ROWS)
        copies = max(1, round(wanted / rows))
        filtered = {name: runs.counted(way(runs.over(copies))) for name, way in ways.items()}
        while trial.rounds < TRIAL_ROUNDS:
            if trial.is_enough and trial.winner(gain_min) == list(ways)[-1]:
                break
            run = {name: runs.seconds(df) for name, df in filtered.items()}
            seconds = {name: min(trial.seconds[name], run[name]) for name in ways}
            first = dict(trial.first_seconds or run)
            if not trial.rounds:
                first[next(iter(ways))] += new_code_s
            trial = TimedTrial(copies * rows, seconds, first, trial.rounds + 1)
    return trial


def _probe(runs: _Runs, rows: int, way: Way) -> tuple[float, float]:
    """Return about how many microseconds a row takes, and how many seconds its new code.

    Two numbers of copies tell the time of a row from the fixed time of a job.
    """
    once, often = (runs.counted(way(runs.over(copies))) for copies in (1, PROBE_COPIES))
    first_s, once_s = runs.seconds(once), runs.seconds(once)
    if once_s > TRIAL_SECONDS[1]:
        return once_s * 1e6 / rows, max(0.0, first_s - once_s)
    often_s = runs.seconds(often)
    row_s = max(often_s - once_s, RESOLUTION_S) / (rows * (PROBE_COPIES - 1))
    return row_s * 1e6, max(0.0, first_s - once_s)
