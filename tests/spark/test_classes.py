"""Classes of rows on Spark: the same rows as Spark's filter, in the JVM, in Python, and in both."""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from sklearn.tree import DecisionTreeClassifier

import eddyline as el
from eddyline.journal.events import (
    ClassesFound,
    ColumnsLeftOut,
    NotReordered,
    PilotSkipped,
    SampleMissing,
)
from eddyline.mesh import Mesh, RowClass
from eddyline.spark.native import run as native_run
from eddyline.spark.native.columns import mesh_to_column, split_to_column
from eddyline.spark.native.timing import TimedConditions, TimedTrial
from tests.unit.mesh.test_tree import from_sklearn

CONDITIONS = [
    f"length(sha2(repeat({name}, 20), 512)) > 0 and {name} rlike 'x[0-9]'" for name in "abc"
]


PATIENT = el.MeshOptions(planning_s_max=None)


@pytest.fixture
def trusted(monkeypatch):
    """A mesh that was found is used, however slow the machine is right now."""

    def trial(sample, rows, ways, expected_us, budget, gain_min):
        return TimedTrial(rows, {way: 1 / n for n, way in enumerate(ways, 1)}, rounds=3)

    def costs(sample, conditions, rows, budget=None):
        return TimedConditions((1.0,) * len(conditions), True)

    monkeypatch.setattr(native_run, "time_ways", trial)
    monkeypatch.setattr(native_run, "time_conditions", costs)


@pytest.fixture(scope="module")
def kinds(spark):
    """Rows of three kinds (one of them NULL); each is dropped by a condition of its own."""
    rng = np.random.default_rng(0)
    rows = 24_000
    kind = rng.integers(0, 3, rows)
    selectivity = np.full((3, 3), 0.9)
    np.fill_diagonal(selectivity, 0.1)
    passed = rng.random((rows, 3)) < selectivity[kind]
    columns = {
        "id": np.arange(rows),
        "kind": [("red", "blue", None)[k] for k in kind],
        "size": rng.random(rows),
    }
    for number, name in enumerate("abc"):
        mark = np.where(passed[:, number], "x1", "y")
        texts = np.array([f"{n * 7919 % 24_001} {m} padding" for n, m in enumerate(mark)], object)
        texts[rng.random(rows) < 0.05] = None
        columns[name] = texts.tolist()
    return spark.createDataFrame(pa.table(columns)).repartition(2).cache()


def optimised_plan(df) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        df.explain(extended=True)
    return printed.getvalue().split("== Optimized Logical Plan ==")[1].split("== Physical")[0]


def ids(df) -> list[int]:
    return sorted(row.id for row in df.select("id").collect())


@pytest.fixture(scope="module")
def expected(kinds):
    return ids(kinds.filter(" AND ".join(CONDITIONS)))


class TestNativePlane:
    def test_the_mesh_gives_sparks_answer_and_every_route_survives_the_optimizer(
        self, kinds, expected, trusted
    ):
        f = el.where(*CONDITIONS, policy=PATIENT, seed=0)
        compiled = kinds.transform(f)
        assert ids(compiled) == expected
        classes = f.report().classes
        assert len(classes) == 3
        assert {line.where for line in classes} == {"in Spark"}
        plan = optimised_plan(compiled)
        visited = re.findall(r"RLIKE\(([abc])#", plan)
        routes = ["".join(visited[n : n + 3]) for n in range(0, len(visited), 3)]
        assert all(sorted(route) == ["a", "b", "c"] for route in routes)
        assert {route[0] for route in routes} == {"a", "b", "c"}
        assert "Python" not in plan
        assert f.journal().of(ClassesFound)

    @pytest.mark.slow
    def test_a_sample_replaces_the_pilot_also_for_streams(
        self, spark, kinds, expected, tmp_path, trusted
    ):
        kinds.write.parquet(str(tmp_path / "in"))
        stream = spark.readStream.schema(kinds.schema).parquet(str(tmp_path / "in"))
        sample = kinds.orderBy("id").limit(2_000)
        f = el.where(*CONDITIONS, policy=PATIENT, sample=sample, seed=0)
        query = (
            stream.transform(f)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "check"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        assert ids(spark.read.parquet(str(tmp_path / "out"))) == expected
        assert len(f.report().classes) == 3
        assert f.report().rejected["id"].startswith("grows with")  # values never return

    def test_a_stream_without_a_sample_runs_as_written_and_says_so(self, spark, kinds, tmp_path):
        kinds.limit(10).write.parquet(str(tmp_path / "in"))
        stream = spark.readStream.schema(kinds.schema).parquet(str(tmp_path / "in"))
        f = el.where(*CONDITIONS, policy="mesh")
        stream.transform(f)
        assert f.journal().of(SampleMissing)

    def test_a_condition_that_could_fail_keeps_its_place(self, spark):
        df = spark.createDataFrame([(1, "7"), (2, "x"), (3, "9")] * 50, "id int, text string")
        f = el.where("text rlike '^[0-9]+$'", "cast(text as int) > 5", "id < 3", policy="mesh")
        assert {row.id for row in df.transform(f).collect()} == {1}
        (kept,) = f.journal().of(NotReordered)
        assert kept.event.predicate == "cast(text as int) > 5"
        assert kept.event.reason == "a cast from string to int can fail"
        assert "cast(text as int) > 5: a cast" in str(f.report())

    def test_an_empty_and_a_tiny_dataframe(self, spark, kinds):
        f = el.where(*CONDITIONS, policy=PATIENT)
        assert kinds.filter("id < 0").transform(f).count() == 0
        one = kinds.filter("id = 5")
        again = el.where(*CONDITIONS, policy="mesh")
        assert one.transform(again).count() == one.filter(" AND ".join(CONDITIONS)).count()

    def test_rows_of_a_kind_that_the_sample_lacks(self, kinds, expected, trusted):
        f = el.where(
            *CONDITIONS, policy=PATIENT, sample=kinds.filter("kind = 'red' or kind is null")
        )
        assert ids(kinds.transform(f)) == expected


class TestPythonPlane:
    def predicates(self):
        def has_x(text):
            return text is not None and "x" in max(text for _ in range(100))

        return [el.udf(has_x, name, name=f"has_x_{name}") for name in "abc"]

    @pytest.mark.parametrize("policy", ["auto", "mesh", "content"])
    def test_same_rows_as_spark(self, kinds, expected, policy):
        f = el.where(*self.predicates(), policy=policy, seed=0)
        assert ids(kinds.transform(f)) == expected
        report = f.report()
        assert report.rows == 24_000
        if policy == "content":
            assert set(report.pairs.values()) == {"kind"}
            assert "by kind" in str(report)

    def test_a_pilot_finds_the_classes_and_only_their_columns_cross(self, kinds, expected):
        f = el.where(*self.predicates(), policy=PATIENT, seed=0)
        filtered = kinds.transform(f)
        assert ids(filtered) == expected
        report = f.report()
        assert len(report.classes) == 3
        assert 0.95 < sum(line.share for line in report.classes) <= 1
        assert report.evaluations < 1.6 * 24_000
        router = [
            line for line in optimised_plan(filtered).splitlines() if "ArrowEvalPython" in line
        ]
        assert "size#" not in router[0].split("]")[0]
        assert "kind" in str(report)

    def crossing(self, df) -> str:
        """Return the columns that the router is called with."""
        plan = optimised_plan(df).splitlines()
        return next(line for line in plan if "ArrowEvalPython" in line).split("]")[0]

    def test_no_column_but_the_arguments_crosses_for_quick_predicates(self, kinds):
        f = el.where(
            el.udf(lambda a: a is not None and len(a) > 3, "a", name="long"),
            el.udf(lambda b: b is not None and "x" in b, "b", name="has_x"),
            seed=0,
        )
        for _ in range(2):  # by their code, then by what they cost
            filtered = kinds.transform(f)
            assert not re.search(r"(kind|size|id|c)#", self.crossing(filtered))
            assert filtered.count() == kinds.filter("length(a) > 3 and b like '%x%'").count()
        left_out = [record.event for record in f.journal().of(ColumnsLeftOut)]
        assert [event.columns for event in left_out] == [("id", "kind", "size", "c")] * 2
        assert "us a row" in left_out[1].reason

    @pytest.mark.parametrize("policy", ["content", "mesh"])
    def test_nothing_is_read_for_classes_of_rows_that_could_not_pay(self, kinds, policy):
        given = [
            el.udf(lambda a: a is not None and len(a) > 3, "a", name="long"),
            el.udf(lambda b: b is not None and "x" in b, "b", name="has_x"),
        ]
        f = el.where(*given, policy=policy, seed=0)
        filtered = kinds.transform(f)
        assert not re.search(r"(kind|size|id|c)#", self.crossing(filtered))
        assert filtered.count() == kinds.filter("length(a) > 3 and b like '%x%'").count()
        (left_out,) = [record.event for record in f.journal().of(ColumnsLeftOut)]
        assert left_out.columns == ("id", "kind", "size", "c")
        assert "less than a microsecond" in left_out.reason
        assert {"id", "kind", "size", "c"} <= f.report().rejected.keys()
        assert "classify_by" in f.report().rejected["kind"]
        assert "classify_by" in str(f.journal())
        assert bool(f.journal().of(PilotSkipped)) == (policy == "mesh")
        named = el.where(*given, policy=policy, classify_by=["kind"], seed=0)
        assert "kind#" in self.crossing(kinds.transform(named))
        assert not named.journal().of(PilotSkipped)

    def test_columns_cross_for_costly_predicates_and_where_they_are_named(self, kinds):
        f = el.where(*self.predicates(), seed=0)
        assert "kind#" in self.crossing(kinds.transform(f))
        assert not f.journal().of(ColumnsLeftOut)
        named = el.where(
            el.udf(lambda a: a is not None, "a"),
            el.udf(lambda b: b is not None, "b"),
            classify_by=["kind"],
        )
        assert "kind#" in self.crossing(kinds.transform(named))

    def test_native_routes_first_then_python(self, kinds, expected):
        f = el.where(
            CONDITIONS[0], CONDITIONS[1], self.predicates()[2], "size >= 0", policy=PATIENT
        )
        assert ids(kinds.transform(f)) == expected

    def test_classify_by_narrows_the_columns(self, kinds, expected):
        f = el.where(*self.predicates(), policy="mesh", classify_by=["size"], seed=0)
        assert ids(kinds.transform(f)) == expected
        assert not f.report().classes
        assert "size" in f.report().rejected

    def test_bad_classify_by(self, kinds):
        with pytest.raises(el.EddylineError, match="no such column"):
            kinds.transform(el.where(*self.predicates(), classify_by=["colour"]))
        listed = kinds.withColumn("list", F.array("id"))
        with pytest.raises(el.EddylineError, match="cannot classify rows"):
            listed.transform(el.where(*self.predicates(), classify_by=["list"]))
        with pytest.raises(el.EddylineError, match="pass a list"):
            el.where(*self.predicates(), classify_by="kind")


@pytest.mark.parametrize("seed", range(2))
def test_a_tree_of_sklearn_in_the_jvm_classifies_every_row_as_sklearn_does(spark, seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(300, 2)).astype(np.float32)
    labels = (features[:, 0] > 0).astype(int) + 2 * (features[:, 1] > 0.5)
    fitted = DecisionTreeClassifier(max_depth=4, random_state=seed).fit(features, labels)
    fresh = rng.normal(size=(500, 2)).astype(np.float32)
    df = spark.createDataFrame(
        pa.table({"x": fresh[:, 0].astype(float), "y": fresh[:, 1].astype(float)})
    )
    tree = from_sklearn(fitted, "xy")
    columns = {"x": F.col("x"), "y": F.col("y")}

    def label_of(node):
        if node.split is None:
            return F.lit(node.label)
        test = split_to_column(node.split, columns[node.split.attribute])
        return F.when(test, label_of(node.left)).otherwise(label_of(node.right))

    found = [row.label for row in df.select(label_of(tree.root).alias("label")).collect()]
    assert found == fitted.predict(fresh).tolist()
    # And as routes: a mesh whose classes answer differently tells which leaf a row reached.
    conditions = [F.col("x") > 0, F.col("y") > 0]
    mesh = Mesh(tree, tuple(RowClass((0, 1) if n % 2 else (1, 0), 0.25, 1, 1) for n in range(4)))
    kept = df.filter(mesh_to_column(mesh, conditions, columns, (0, 1))).count()
    assert kept == int(((fresh[:, 0] > 0) & (fresh[:, 1] > 0)).sum())
