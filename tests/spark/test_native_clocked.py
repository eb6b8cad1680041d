"""Orders of native conditions from a clock that is read between them: no way is timed by itself."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import eddyline as el
from eddyline.journal.events import NativeReordered, NoClassesFound, PlanningStopped
from eddyline.spark.common.planning import PlanningBudget
from eddyline.spark.native import clocked, front, stage
from eddyline.spark.native import run as native_run
from eddyline.spark.native.learning import evaluate_sample
from eddyline.spark.native.pilot import bytes_of, glimpse, with_held_out
from tests.spark.cases import jobs_so_far

UNHURRIED = el.MeshOptions(planning_s_max=120.0)
#: Hundreds of microseconds and nothing dropped; cheap, and nearly everything dropped.
DEAR = "sha2(repeat(text, 2000), 512) > '0'"
CHEAP = "concat(text, 'a') rlike '^t7'"


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    """A table of files without partitions."""
    path = str(tmp_path_factory.mktemp("clocked") / "table")
    spark.range(0, 40_000, 1, 2).selectExpr("id", "concat('t', id % 9) text").write.parquet(path)
    return spark.read.parquet(path)


@pytest.fixture
def untimed(monkeypatch):
    def no_timing(*given, **more):
        raise AssertionError("nothing needs to be timed by itself")

    monkeypatch.setattr(native_run, "time_ways", no_timing)
    monkeypatch.setattr(native_run, "time_conditions", no_timing)


@pytest.fixture
def large(monkeypatch):
    """Makes the table one of which not all rows can be read in time."""
    monkeypatch.setattr(stage, "GLIMPSE_BYTES_MIN", 0)
    monkeypatch.setattr(stage, "BYTES_PER_SECOND", 1)


def reordered(f) -> bool:
    return bool(f.journal().of(NativeReordered))


def middle_us(df, *conditions: str) -> list[float]:
    budget = PlanningBudget(df.sparkSession, None)
    columns = [F.expr(condition) for condition in conditions]
    evaluated = evaluate_sample(with_held_out(df.limit(1_000)), columns, {}, budget, True)
    answers = df.limit(1_000).select(*columns).collect()
    assert (~evaluated.drops).tolist() == [list(row) for row in answers]
    return clocked.first_ranges(evaluated.durations_ns).middle_us.tolist()


class TestClock:
    def test_it_tells_the_costs_of_conditions_apart(self, table):
        cheap_us, dear_us, again_us = middle_us(table, CHEAP, DEAR, DEAR)
        assert dear_us > 5 * cheap_us
        assert again_us > 3 * cheap_us  # Spark does not compute it once for both

    def test_a_second_pass_is_over_many_copies(self, table, monkeypatch):
        monkeypatch.setattr(clocked, "BEGINNING_S", 60.0)
        sample = table.limit(1_000).cache()
        columns = [F.expr(condition) for condition in (CHEAP, DEAR)]
        budget = PlanningBudget(table.sparkSession, None)
        ranges = clocked.clock_again(sample, columns, 0.05, budget)
        sample.unpersist()
        cheap_us, dear_us = ranges.middle_us
        assert dear_us > 5 * cheap_us
        assert max(ranges.high_us) < 2 * max(ranges.low_us)

    def test_a_second_pass_that_begins_too_late_tells_nothing(self, table, monkeypatch):
        monkeypatch.setattr(clocked, "BEGINNING_S", -60.0)
        budget = PlanningBudget(table.sparkSession, None)
        columns = [F.expr(condition) for condition in (CHEAP, DEAR)]
        assert clocked.clock_again(table.limit(1_000), columns, 0.05, budget) is None


class TestOrder:
    def test_different_kinds_are_reordered_without_trials(self, table, untimed):
        f = el.where(DEAR, CHEAP, policy=UNHURRIED, seed=0)
        filtered = table.transform(f)
        (change,) = f.journal().of(NativeReordered)
        assert change.event.after == (CHEAP, DEAR)
        assert filtered.count() == table.filter(DEAR).filter(CHEAP).count()
        assert not f.journal().of(PlanningStopped)

    def test_a_good_order_stays_and_costs_few_jobs(self, spark, table, untimed):
        before = jobs_so_far(spark)
        f = el.where(CHEAP, DEAR, policy=UNHURRIED, seed=0)
        table.transform(f)
        assert jobs_so_far(spark) - before <= 4  # a dozen to time each condition
        assert not reordered(f)
        assert not f.journal().of(PlanningStopped)

    def test_short_queries_are_not_searched_for_classes(self, table, untimed):
        classes = [f"sha2(text, {n}) < if(id % 2 = {n % 3}, '0', 'g')" for n in (256, 384)]
        f = el.where(*classes, policy=UNHURRIED, seed=0)
        table.limit(2_000).transform(f)
        (event,) = f.journal().of(NoClassesFound)
        assert event.event.stopped in ("the query is too short", "no route could save enough")


class TestGlimpse:
    def test_it_reads_few_rows(self, spark):
        df = spark.range(0, 10**9, 1, 50)
        rows = [row.id for row in glimpse(df).collect()]
        assert len(rows) == 500
        assert max(rows) < 20_000

    def test_where_the_pilot_takes_too_long_it_tells_a_much_better_order(
        self, table, untimed, large
    ):
        f = el.where(DEAR, CHEAP, policy=UNHURRIED, seed=0)
        filtered = table.transform(f)
        assert reordered(f)
        assert f.journal().of(PlanningStopped)
        assert filtered.count() == table.filter(DEAR).filter(CHEAP).count()

    def test_it_is_not_enough_for_a_small_gain(self, table, untimed, large, monkeypatch):
        monkeypatch.setattr(native_run, "FIRST_ROWS_GAIN", 0.9999)
        f = el.where(DEAR, CHEAP, policy=UNHURRIED, seed=0)
        table.transform(f)
        assert not reordered(f)
        assert f.journal().of(PlanningStopped)

    def test_sizes_that_spark_only_guesses_are_unknown(self, spark):
        df = spark.range(10**6)
        assert bytes_of(df) == 8 * 10**6
        assert bytes_of(df.crossJoin(df)) is None


def test_files_without_partitions_are_not_planned_to_find_some(table, untimed, monkeypatch):
    def no_plan(df):
        raise AssertionError("there are no partitions")

    monkeypatch.setattr(front, "_partition_filters", no_plan)
    table.transform(el.where(DEAR, CHEAP, policy=UNHURRIED, seed=0))
