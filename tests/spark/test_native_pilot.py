"""A real pilot over native conditions: nothing here sets what they cost or how long they take."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import eddyline as el
from eddyline.bench.cpu_time import cpu_seconds
from eddyline.bench.harness import run_to_noop
from eddyline.journal.events import ClassesFound, NativeReordered, TrialEnded
from eddyline.spark.native import conditions, counting, front, pilot, timing
from eddyline.spark.native import run as native_run
from eddyline.spark.native.learning import collect_arrow
from eddyline.spark.native.pilot import pilot_sample
from tests.spark.cases import SCHEMA, jobs_so_far, random_rows
from tests.spark.test_native import HASHES, plan_of

UNHURRIED = el.MeshOptions(planning_s_max=120.0)
#: Hexadecimal digits: nothing is below '0', everything is below 'g'.
NONE, ALL = "0", "g"
DIGESTS = ["md5({})", "sha1({})", "sha2({}, 256)", "sha2({}, 512)"]


def digests_of_classes(repetitions: int) -> list[str]:
    """Conditions of different costs; each drops all rows of one class, and no others."""
    text = f"repeat(text, {repetitions})"
    return [
        f"{digest.format(text)} < CASE WHEN c = {n} THEN '{NONE}' ELSE '{ALL}' END"
        for n, digest in enumerate(DIGESTS)
    ]


def ids(df) -> list[int]:
    return sorted(row.id for row in df.select("id").collect())


def no_timing(*given, **more):
    raise AssertionError("nothing needs to be timed")


@pytest.fixture(scope="module")
def numbers(spark):
    """So many rows that a mesh pays for its code."""
    return spark.range(2_000_000).selectExpr("id", "id % 3 AS c")


@pytest.fixture
def untimed(monkeypatch):
    monkeypatch.setattr(native_run, "time_ways", no_timing)
    monkeypatch.setattr(native_run, "time_conditions", no_timing)


class TestPilot:
    @pytest.mark.parametrize("rows", [20, 2_000])
    def test_only_rows_that_may_be_in_the_pilot_are_sorted(self, spark, rows):
        df = spark.range(0, 300_000, 1, 3)
        ranked = df.withColumn(pilot.RANK, F.rand(5))
        expected = {row.id for row in ranked.orderBy(pilot.RANK).limit(rows).collect()}
        assert {row.id for row in pilot_sample(df, rows, seed=5).collect()} == expected
        assert rows <= pilot._with_small_ranks(df, rows, 5).count() < 50_000

    def test_few_rows_are_all_in_the_pilot(self, spark):
        assert pilot_sample(spark.range(0, 700, 1, 3)).count() == 700


class TestCounts:
    def test_conditions_that_cost_the_same_become_a_mesh_without_timing(self, numbers, untimed):
        f = el.where(*HASHES, policy=UNHURRIED, seed=0)
        filtered = numbers.transform(f)
        assert len(f.report().classes) == 3
        (trial,) = f.journal().of(TrialEnded)
        assert (trial.event.method, trial.event.verdict) == ("counted", "kept")
        assert trial.event.after_us < 0.7 * trial.event.before_us
        assert "estimated from" in " ".join(str(f.report()).split())
        some = F.col("id") % 100 == 0
        expected = numbers.filter(" AND ".join(HASHES))
        assert ids(filtered.filter(some)) == ids(expected.filter(some))
        assert filtered.count() == expected.count()

    @pytest.mark.slow
    def test_the_mesh_takes_less_cpu_time(self, numbers):
        f = el.where(*HASHES, policy=UNHURRIED, seed=0)
        ways = {"written": numbers.filter(" AND ".join(HASHES)), "mesh": numbers.transform(f)}
        spent = {name: [] for name in ways}
        for _ in range(6):  # in the first ones the JVM compiles
            for name, df in ways.items():
                before = cpu_seconds()
                if before is None:
                    pytest.skip("CPU time is not known here")
                run_to_noop(df)
                spent[name].append(cpu_seconds() - before)
        assert min(spent["written"]) > 1.2 * min(spent["mesh"])

    def test_uniform_rows_keep_plain_filters(self, numbers, untimed):
        uniform = [f"substring(sha2(concat_ws('-', {n}, id), 512), 1, 2) < 'e6'" for n in range(3)]
        f = el.where(*uniform, policy=UNHURRIED, seed=0)
        filtered = numbers.transform(f)
        assert "CASE" not in plan_of(filtered, "Optimized Logical Plan")
        assert not f.report().classes
        assert not f.journal().of(NativeReordered)

    def test_the_condition_that_drops_most_comes_first(self, numbers, untimed):
        bounds = ["f0", "e0", "04"]
        given = [
            f"substring(sha2(concat_ws('-', {n}, id), 512), 1, 2) < '{bound}'"
            for n, bound in enumerate(bounds)
        ]
        f = el.where(*given, policy=UNHURRIED, seed=0)
        filtered = numbers.limit(100_000).transform(f)
        (change,) = f.journal().of(NativeReordered)
        assert change.event.after[0] == given[2]
        assert filtered.count() == numbers.limit(100_000).filter(" AND ".join(given)).count()

    @pytest.mark.parametrize("reason", ["few rows", "a large method"])
    def test_without_a_clear_gain_the_ways_are_timed(self, spark, numbers, monkeypatch, reason):
        if reason == "a large method":
            monkeypatch.setattr(counting, "METHOD_BYTES_MAX", 100)
        asked = []
        time_ways = native_run.time_ways

        def time_and_note(*given, **more):
            asked.append(given)
            return time_ways(*given, **more)

        monkeypatch.setattr(native_run, "time_ways", time_and_note)
        f = el.where(*HASHES, policy=UNHURRIED, seed=0)
        df = numbers.filter("id < 9000") if reason == "few rows" else numbers
        df.transform(f)
        assert len(asked) == 1
        assert len(f.journal().of(ClassesFound)) == 1  # searched once
        (trial,) = f.journal().of(TrialEnded)
        assert trial.event.method == "alternating"


class TestTrials:
    def test_a_real_trial_adopts_a_mesh_on_clearly_separated_classes(self, spark, monkeypatch):
        copied, over = [], timing._Runs.over
        monkeypatch.setattr(
            timing._Runs, "over", lambda runs, copies: copied.append(copies) or over(runs, copies)
        )
        df = spark.range(40_000).selectExpr("id", "id % 5 AS c", "concat('text', id) text")
        # A sample does not tell how many rows follow, so the time for new code does not count.
        f = el.where(*digests_of_classes(1_000), policy=UNHURRIED, sample=df, seed=0)
        filtered = df.transform(f)
        assert f.report().classes
        trial = f.journal().of(TrialEnded)[-1]
        assert (trial.event.method, trial.event.verdict) == ("alternating", "kept")
        assert ids(filtered) == list(range(4, 40_000, 5))
        assert max(copied) < 60  # of some hundred that conditions of a microsecond would need

    def test_uniform_rows_keep_plain_filters(self, spark):
        df = spark.range(5_000).selectExpr("id", "id % 4 AS c", "concat('text', id) text")
        uniform = [f"{digest.format('text')} < 'c'" for digest in DIGESTS]
        f = el.where(*uniform, policy=UNHURRIED, seed=0)
        filtered = df.transform(f)
        assert not f.report().classes
        assert "CASE" not in plan_of(filtered, "Optimized Logical Plan")
        assert ids(filtered) == ids(df.filter(" AND ".join(uniform)))


class TestCostOfPlanning:
    def test_nothing_is_learnt_or_built_twice(self, spark, numbers, monkeypatch):
        built = []
        mesh_to_column = conditions.mesh_to_column

        def build(*given):
            built.append(given)
            return mesh_to_column(*given)

        monkeypatch.setattr(conditions, "mesh_to_column", build)
        f = el.where(*HASHES, policy=UNHURRIED, seed=0)
        before = jobs_so_far(spark)
        numbers.transform(f)
        learnt = jobs_so_far(spark)
        assert learnt > before
        for _ in range(3):
            numbers.transform(f)
        numbers.filter("id > 5").transform(f)
        assert jobs_so_far(spark) == learnt
        assert len(built) == 1

    def test_the_sample_is_read_once(self, spark, numbers, untimed):
        before = jobs_so_far(spark)
        numbers.transform(el.where(*HASHES, policy=UNHURRIED, seed=0))
        assert jobs_so_far(spark) - before <= 2  # Spark may run one query as two jobs

    def test_what_reads_no_files_is_not_planned_to_find_partitions(self, numbers, monkeypatch):
        monkeypatch.setattr(front, "_partition_filters", no_timing)
        numbers.transform(el.where(*HASHES, policy=UNHURRIED, seed=0))

    def test_rows_are_collected_as_arrow_would(self, spark):
        df = spark.createDataFrame(random_rows(0, 200), SCHEMA)
        for columns in (["a", "b", "s", "d", "flag"], ["a", "t"]):
            given = df.select(*columns)
            collected, arrow = collect_arrow(given), given.toArrow()
            assert collected.schema.types == arrow.schema.types
            assert repr(collected.to_pylist()) == repr(arrow.to_pylist())  # NaN is not NaN
