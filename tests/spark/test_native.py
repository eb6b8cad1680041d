"""Native conditions on Spark: what is pushed down, what is reordered, and what planning costs."""

from __future__ import annotations

import contextlib
import io
import re
import time

import pytest
from pyspark.sql import functions as F

import eddyline as el
from eddyline.journal.events import (
    ClassesFound,
    NativeReordered,
    NoClassesFound,
    NotReordered,
    PlanningStopped,
    TrialEnded,
)
from eddyline.spark.common.planning import OutOfTimeError, PlanningBudget
from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.common.session_settings import session_settings
from eddyline.spark.native import run as native_run
from eddyline.spark.native.failing import why_it_may_fail
from eddyline.spark.native.timing import TimedConditions, TimedTrial, time_conditions
from tests.spark.cases import SCHEMA, jobs_so_far, random_rows

PATIENT = el.MeshOptions(planning_s_max=None)


def hash_condition(number: int) -> str:
    """Drop nearly all rows of one class, and few of the others."""
    digest = f"substring(sha2(concat_ws('-', {number}, cast(id as string)), 512), 1, 2)"
    return f"{digest} < CASE WHEN c = {number} THEN '0d' ELSE 'e6' END"


HASHES = [hash_condition(number) for number in range(3)]
#: Of different kinds: what they cost must be timed.
UNLIKE = [
    text.replace("512", bits) for text, bits in zip(HASHES, ("512", "384", "256"), strict=True)
]


def plan_of(df, part: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        df.explain(extended=True)
    return printed.getvalue().split(f"== {part} ==")[1]


def fake_costs(monkeypatch) -> None:
    def costs(sample, conditions, rows, budget=None):
        return TimedConditions((1.0,) * len(conditions), True)

    monkeypatch.setattr(native_run, "time_conditions", costs)


def fake_trial(monkeypatch, **seconds: float) -> None:
    fake_costs(monkeypatch)

    def trial(sample, rows, ways, expected_us, budget, gain_min):
        return TimedTrial(rows, {way: seconds[way] for way in ways}, rounds=3)

    monkeypatch.setattr(native_run, "time_ways", trial)


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    """A table of files, partitioned by day."""
    path = str(tmp_path_factory.mktemp("native") / "table")
    rows = spark.range(12_000).selectExpr(
        "id", "cast(id % 3 as int) c", "concat('t', id) text", "cast(id % 4 as int) day"
    )
    rows.repartition(2).write.partitionBy("day").parquet(path)
    return spark.read.parquet(path)


class TestFiltersInFront:
    def check(self, filtered, partitions: str, pushed: str) -> None:
        scan = re.search(r"FileScan[^\n]*", plan_of(filtered, "Physical Plan"))[0]
        assert partitions in scan.split("PartitionFilters: ")[1].split("PushedFilters")[0]
        assert pushed in scan.split("PushedFilters: ")[1]

    @pytest.mark.parametrize("way", ["mesh", "auto with a sample", "with a Python predicate"])
    def test_partitions_are_pruned_and_comparisons_reach_the_files(self, table, monkeypatch, way):
        fake_trial(monkeypatch, written=3.0, order=2.0, classes=1.0)
        predicates = [*HASHES, "day = 3", "id > 100"]
        options = {
            "mesh": {"policy": PATIENT},
            "auto with a sample": {"policy": "auto", "sample": table.limit(1_000)},
            "with a Python predicate": {"policy": PATIENT},
        }[way]
        if way == "with a Python predicate":
            predicates.append(el.udf(lambda text: text != "t7", "text", name="not_t7"))
        f = el.where(*predicates, seed=0, **options)
        filtered = table.transform(f)
        self.check(filtered, "(day", "GreaterThan(id,100)")
        expected = table.filter(" AND ".join([*HASHES, "day = 3", "id > 100", "text <> 't7'"]))
        assert sorted(filtered.select("id").collect()) == sorted(expected.select("id").collect())
        if way == "mesh":
            assert f.journal().of(ClassesFound)

    def test_a_function_of_a_partition_column_and_a_part_of_a_condition(self, table):
        f = el.where(*HASHES, "day % 4 = 1", f"id < 500 AND {HASHES[0]}", policy=PATIENT)
        filtered = table.transform(f)
        self.check(filtered, "% 4) = 1", "LessThan(id,500)")
        expected = table.filter(" AND ".join(HASHES)).filter("day % 4 = 1 AND id < 500")
        assert filtered.count() == expected.count()

    def test_a_column_is_pushed_down_like_text(self, table):
        columns = [F.expr(text) for text in HASHES]
        f = el.where(*columns, F.col("day") == 3, table["text"].startswith("t1"), policy=PATIENT)
        self.check(table.transform(f), "(day", "StringStartsWith(text,t1)")

    def test_nothing_moves_across_a_condition_that_is_not_deterministic(self, table):
        f = el.where(*HASHES, "rand(1) < 0.5", "id > 100", policy=PATIENT)
        expected = table.filter(" AND ".join(HASHES)).filter("rand(1) < 0.5").filter("id > 100")
        assert "GreaterThan" not in plan_of(expected, "Physical Plan")
        assert "GreaterThan" not in plan_of(table.transform(f), "Physical Plan")


class TestReordering:
    def test_three_classes_become_a_mesh_with_all_routes_in_the_plan(self, table, monkeypatch):
        fake_trial(monkeypatch, written=3.0, order=2.0, classes=1.0)
        f = el.where(*HASHES, policy=PATIENT, seed=0)
        filtered = table.transform(f)
        assert not f.report().not_reordered
        assert len(f.report().classes) == 3
        plan = plan_of(filtered, "Optimized Logical Plan").split("== Physical")[0]
        visited = re.findall(r"concat_ws\(-, (\d),", plan)
        routes = {"".join(visited[n : n + 3]) for n in range(0, len(visited), 3)}
        assert {route[0] for route in routes} == {"0", "1", "2"}
        assert all(sorted(route) == ["0", "1", "2"] for route in routes)
        assert filtered.count() == table.filter(" AND ".join(HASHES)).count()

    def test_a_mesh_that_is_slower_than_the_best_order_is_not_used(self, table, monkeypatch):
        fake_trial(monkeypatch, written=3.0, order=2.0, classes=2.5)
        f = el.where("text rlike 't[0-9]*'", *HASHES, policy=PATIENT, seed=0)
        filtered = table.transform(f)
        (trial,) = f.journal().of(TrialEnded)
        assert trial.event.verdict == "reverted"
        assert f.journal().of(NativeReordered)
        assert not f.report().classes
        plan = plan_of(filtered, "Optimized Logical Plan").split("== Physical")[0]
        assert plan.count("concat_ws(-, 0,") == 1  # one order, not a route for each class
        assert "which are not used" in str(f.report())

    def test_the_written_order_stays_if_it_is_the_fastest(self, table, monkeypatch):
        fake_trial(monkeypatch, written=1.0, order=2.0, classes=2.0)
        f = el.where("text rlike 't[0-9]*'", *HASHES, policy=PATIENT, seed=0)
        plan = plan_of(table.transform(f), "Optimized Logical Plan").split("== Physical")[0]
        assert re.findall(r"RLIKE|concat_ws\(-, \d", plan)[0] == "RLIKE"
        assert not f.journal().of(NativeReordered)

    def test_the_trial_times_real_runs(self, table, monkeypatch):
        fake_costs(monkeypatch)
        f = el.where(*HASHES, policy=PATIENT, seed=0)
        table.transform(f)
        (line,) = f.report().native_orders
        assert line.is_timed
        assert line.classes_us is not None
        assert 0 < line.written_us < 1_000

    def test_costly_conditions_are_told_from_cheap_ones(self, table):
        sample = table.limit(500).persist()
        conditions = [F.expr("length(sha2(repeat(text, 5000), 512)) > 0"), F.expr("id >= 0")]
        timed = time_conditions(sample, conditions, sample.count())
        sample.unpersist()
        assert timed.is_complete
        assert timed.cost_us[0] > 5 * timed.cost_us[1]

    def test_the_report_says_what_was_reordered_and_what_it_saves(self, table, monkeypatch):
        fake_trial(monkeypatch, written=5.0, order=3.0)
        costly = "length(sha2(repeat(text, 50), 512)) > 0"
        f = el.where(costly, "text rlike '7$'", policy=PATIENT, classify_by=["day"], seed=0)
        filtered = table.transform(f)
        assert f.journal().of(NoClassesFound)
        report = f.report()
        assert report.native_orders[0].order == ("text rlike '7$'", costly)
        assert report.native_orders[0].saving == pytest.approx(0.4)
        text = " ".join(str(report).split())
        assert "in an order learnt from sampled rows" in text
        assert "saves 40%" in text
        assert "nothing to route" not in text
        assert filtered.count() == table.filter("text rlike '7$'").count()
        plan = plan_of(filtered, "Optimized Logical Plan").split("== Physical")[0]
        assert plan.index("RLIKE") < plan.index("sha2")

    def test_operators_inside_literals_do_not_pin_a_column(self, table):
        conditions = [
            F.col("text") != "a + b - c * d / e % f [0]",
            F.col("text").rlike("t[0-9]+"),
            ~F.col("text").contains("x - y"),
            F.length("text") > 1,
        ]
        for condition in conditions:
            assert why_it_may_fail(table, NativePredicate(condition)) is None

    def test_a_python_function_named_like_one_of_spark_is_pinned(self, table):
        def contains(one: str, other: str) -> bool:
            return True

        predicate = NativePredicate(F.udf(contains, "boolean")("text", "text"))
        assert why_it_may_fail(table, predicate) == "it calls a user-defined function"

    def test_may_fail_overrides_what_the_syntax_says(self, table):
        assert why_it_may_fail(table, el.expr("id + 1 > 5")) == "an addition can overflow"
        assert why_it_may_fail(table, el.expr("id + 1 > 5", may_fail=False)) is None
        assert why_it_may_fail(table, el.expr("id > 5", may_fail=True)) == "may_fail=True"

    def test_every_condition_that_keeps_its_place_is_in_the_report(self, table):
        f = el.where("id + 1 > 5", "1 / c > 0", *HASHES[:2], policy=PATIENT)
        with contextlib.suppress(Exception):
            table.transform(f)
        assert set(f.report().not_reordered) == {"id + 1 > 5", "1 / c > 0"}
        assert len(f.journal().of(NotReordered)) == 2

    def test_bad_conditions(self):
        with pytest.raises(el.InvalidPredicateError, match="empty"):
            el.expr(" ")
        with pytest.raises(el.InvalidPredicateError, match="needs SQL text or a Column"):
            el.expr(5)


HARMLESS_OR_NOT = [
    "a + 1 > 0",
    "a * 1000000000 > 0",
    "1 / a > 0",
    "a % 7 = 1",
    "a / 2 > 1",
    "a = '5'",
    "s > 5",
    "cast(s as int) > 1",
    "try_cast(s as int) > 1",
    "cast(b as int) > 1",
    "cast(a as tinyint) > 1",
    "cast(a as string) < '5'",
    "cast(a as double) / 3 > b",
    "cast(d as timestamp) < t",
    "cast(t as date) > d",
    "cast(flag as int) = 1",
    "xs[0] > 1",
    "element_at(xs, 2) = 1",
    "size(xs) > 1",
    "regexp_extract(s, 'a(b)?', 1) = ''",
    "regexp_extract(s, 'a', 1) = ''",
    "regexp_replace(s, 'a', '$3') = ''",
    "regexp_replace(s, 'a', 'z') = 'zb'",
    "substring(s, a, 2) = 'a'",
    "lpad(s, a, 'x') > 'a'",
    "repeat(s, a) > 'x'",
    "split(s, 'a', a) is not null",
    "coalesce(s, a) is not null",
    "case when flag then a else s end = 1",
    "concat(s, a, b, d) > 'a'",
    "concat_ws('-', a, s, flag) > 'a'",
    "greatest(a, b) > 1 and least(a, 5) < 4",
    "d > '2024-02-10' or t > '2024-02-10 10:00:00'",
    "d > 'soon'",
    "year(d) = 2024 and hour(t) < 12",
    "datediff(d, t) > 1",
    "sqrt(a) > 1 and ln(b) < 3 and pow(a, b) > 0",
    "round(b, 1) > 1 and abs(b) > 0",
    "abs(a) > 2 and -a < 1",
    "nullif(a, 5) is null",
    "levenshtein(s, 'ab') < 3 and soundex(s) > 'A'",
    "sha2(s, a) > 'a' and md5(s) > 'a' and hash(a, s) > 0",
    "a & 3 = 1",
    "translate(s, 'ab', 'cd') > 'c' and left(s, a) = s",
    "try_divide(a, a) > 0 and try_add(a, 1) > 0",
    "not flag or a in (1, 2, 3000000000)",
    "b > 0.5 and a > 1.5",
    "isnan(b) or isnull(s)",
    "locate('a', s, a) > 0 and instr(s, s) = 1",
]


HARMLESS = [
    "length(regexp_replace(s, '[^A-Z]', '')) < 0.05D * length(s)",
    "regexp_instr(s, 'a') > 0 and regexp_count(s, 'a') > 1 and regexp_substr(s, 'a') = 'b'",
    "trim(s) = 'a' and ltrim(s) = 'a' and btrim(s) = 'b' and initcap(s) = 'A'",
    "lpad(s, 5) = 'a' and left(s, 2) = 'a' and substr(s, 2) = 'a' and replace(s, 'a') = 'b'",
    "split(s, 'a') is null and size(split(s, 'a')) > 1",
    "s like 'a!%' escape '!' and s ilike '%a' and position('a' in s) > 1",
    "s between 'a' and 'b' and a between 1 and 3",
    "nvl(s, 'a') = 'b' and ifnull(s, 'a') = 'b' and nvl2(s, 'a', 'b') = 'a'",
    "if(flag, 'a', 'b') = 'a'",
    "d > current_date() and t > now() and try_to_timestamp(s) > t",
    "get_json_object(s, '$.a') = 'b' and contains(s, 'a')",
    *HASHES,
]


@pytest.mark.parametrize("condition", HARMLESS)
def test_what_spark_adds_to_a_harmless_condition_does_not_pin_it(spark, condition):
    df = spark.createDataFrame([], f"{SCHEMA}, c int")
    assert why_it_may_fail(df, NativePredicate(condition)) is None


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_condition_that_is_called_harmless_fails_on_no_row(spark, ansi):
    extremes = [
        (1_000 + n, a, b, s, None, None, None, None)
        for n, (a, b, s) in enumerate(
            [(2**31 - 1, 1e308, "x1"), (-(2**31), float("-inf"), "-"), (0, float("nan"), "\\")]
        )
    ]
    with session_settings(spark, {"spark.sql.ansi.enabled": ansi}):
        df = spark.createDataFrame([*random_rows(0, 200), *extremes], SCHEMA)
        df = df.repartition(1).cache()
        wrong, harmless = [], 0
        for condition in HARMLESS_OR_NOT:
            if why_it_may_fail(df, NativePredicate(condition)) is not None:
                continue
            harmless += 1
            try:
                df.filter(condition).count()
            except Exception as error:
                wrong.append(f"{condition}: {str(error).splitlines()[0]}")
        df.unpersist()
    assert wrong == []
    assert harmless >= 28


class TestPlanning:
    def test_planning_ends_in_time_and_the_rows_are_right(self, spark):
        slow = spark.range(0, 4_000, 1, 2).withColumn("c", F.col("id") % 3)
        for _ in range(4):  # some hundred microseconds a row, in Spark
            slow = slow.withColumn(
                "c", F.length(F.sha2(F.repeat(F.col("id"), 100_000), 512)) + F.col("c")
            )
        f = el.where(*HASHES, policy=el.MeshOptions(planning_s_max=0.3), seed=0)
        began = time.perf_counter()
        filtered = slow.transform(f)
        assert time.perf_counter() - began < 6  # analysis, and a machine that does other things
        assert f.journal().of(PlanningStopped)
        assert filtered.columns == ["id", "c"]

    def test_a_budget_cancels_the_job_that_exceeds_it(self, spark):
        endless = spark.range(10**12).selectExpr("max(sha2(cast(id as string), 512))")
        budget = PlanningBudget(spark, 0.5)
        began = time.perf_counter()
        with pytest.raises(OutOfTimeError):
            budget.run(endless.collect)
        assert time.perf_counter() - began < 20
        assert budget.is_over
        assert spark.range(5).count() == 5  # other jobs are not affected

    def test_an_error_in_time_is_that_error(self, spark):
        failing = spark.range(5).selectExpr("raise_error('mine')")
        with pytest.raises(Exception, match="mine"):
            PlanningBudget(spark, 60).run(failing.collect)

    def test_nothing_is_learnt_twice(self, table, monkeypatch):
        fake_trial(monkeypatch, written=3.0, order=2.0, classes=1.0)
        python = [el.udf(lambda text, n=n: n not in text, "text", name=n) for n in ("a", "b")]
        f = el.where(*HASHES, *python, policy=PATIENT, seed=0)
        table.transform(f)
        records = len(f.journal())
        jobs = jobs_so_far(table.sparkSession)
        table.transform(f)
        table.select("*").transform(f)
        assert len(f.journal()) == records
        assert jobs_so_far(table.sparkSession) == jobs

    def test_bad_limits(self):
        with pytest.raises(el.EddylineError, match="planning_s_max is 0"):
            el.MeshOptions(planning_s_max=0)
