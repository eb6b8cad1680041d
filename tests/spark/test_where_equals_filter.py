"""`el.where` must give exactly the rows of Spark's own filter: random predicates, random data."""

from __future__ import annotations

import random
import time

import pandas as pd
import pytest
from pyspark.sql import functions as F

import eddyline as el
from eddyline.journal.events import KnowledgeRestored, OrderChanged
from tests.spark.cases import SCHEMA, by_spark, candidates, ids, random_rows


@pytest.mark.parametrize("seed", range(10))
def test_random_predicates_over_random_data(spark, seed: int) -> None:
    rng = random.Random(seed)
    data = random_rows(seed, rng.choice([0, 1, 700, 1500]))
    df = spark.createDataFrame(data, SCHEMA).repartition(rng.choice([1, 3, 5]))
    chosen = rng.sample(candidates(spark), rng.randint(1, 5))
    policy = rng.choice(["auto", "as_written", "sweep", "independent", "local_swaps", "lottery"])
    f = el.where(*[mine for mine, _ in chosen], policy=policy, seed=seed)
    # The filtered DataFrame must also have the same columns, in the same order.
    filtered = df.transform(f)
    assert filtered.columns == df.columns
    assert ids(filtered) == ids(by_spark(df, [theirs for _, theirs in chosen]))


def test_every_kind_of_predicate_by_itself(spark) -> None:
    df = spark.createDataFrame(random_rows(99, 400), SCHEMA).coalesce(2)
    for mine, theirs in candidates(spark):
        assert ids(df.transform(el.where(mine))) == ids(by_spark(df, [theirs])), mine


def test_complex_types_arrive_as_spark_hands_them_over(spark) -> None:
    df = spark.createDataFrame(
        [
            (1, {"k": 1}, (1, "x"), bytearray(b"ab"), None),
            (2, {"q": 2}, (2, None), None, 2.50),
            (3, None, None, bytearray(b""), 1.25),
        ],
        "id int, m map<string,int>, p struct<n:int,w:string>, raw binary, price double",
    ).withColumn("price", F.col("price").cast("decimal(10,2)"))

    def judge(m, p, raw, price):
        assert m is None or isinstance(m, dict)
        assert p is None or p.n == p["n"]
        assert raw is None or isinstance(raw, bytes)
        return (m is None or "k" in m) and (p is None or p.w == "x") and str(price) != "2.50"

    mine = el.udf(judge, "m", "p", "raw", "price")
    theirs = F.udf(judge, "boolean")("m", "p", "raw", "price")
    assert ids(df.transform(el.where(mine))) == ids(df.filter(theirs)) == [1, 3]


def test_nested_fields_and_expressions_as_arguments(spark) -> None:
    df = spark.createDataFrame([(1, ("x", 3)), (2, ("y", 9))], "id int, p struct<w:string,n:int>")
    f = el.where(
        el.udf(lambda n: n > 2, "p.n"), el.udf(lambda w: w == "Y", F.upper("p.w"), name="is_y")
    )
    assert ids(df.transform(f)) == [2]


def test_keys_of_different_widths_are_compared_as_numbers(spark) -> None:
    df = spark.createDataFrame([(1, 1.0), (2, 2.5), (3, None)], "id int, v double")
    table = spark.createDataFrame([(1,), (2,)], "v int")
    assert ids(df.transform(el.where(el.lookup(table, on="v")))) == [1]
    wide = spark.createDataFrame([(1,), (3,)], "id bigint")
    assert ids(df.transform(el.where(el.lookup(wide, on="id")))) == [1, 3]


def test_the_router_is_evaluated_once_a_row(spark, tmp_path) -> None:
    """Count calls through files, since the function runs in other processes."""
    calls = tmp_path / "calls"

    def once(value):
        with open(calls, "a") as out:
            out.write(f"{value}\n")
        return value % 2 == 0

    df = spark.range(0, 100, 1, 1)
    f = el.where(el.udf(once, "id"))
    filtered = df.transform(f).withColumn("twice", F.col("id") * 2).filter("twice >= 0")
    assert filtered.count() == 50
    assert sorted(map(int, calls.read_text().split())) == list(range(100))
    plan = filtered._jdf.queryExecution().executedPlan().toString()
    assert plan.count("eddyline_router(") == 1
    assert plan.count("ArrowEvalPython") == 1


def test_only_the_needed_columns_cross_into_python(spark) -> None:
    df = spark.createDataFrame(random_rows(1, 10), SCHEMA)
    plan = df.transform(el.where(el.udf(lambda a: True, "a")))._jdf.queryExecution().toString()
    assert "eddyline_router(a#" in plan
    assert "eddyline_router(a#" in plan.split("ArrowEvalPython")[1]
    assert ", s#" not in plan.split("eddyline_router(")[1].split(")")[0]


def test_native_conditions_run_before_python(spark) -> None:
    f = el.where(el.udf(lambda i: i % 2 == 0, "id"), "id < 10")
    assert spark.range(100).transform(f).count() == 5
    assert f.report().rows == 10


def test_only_native_conditions_need_no_python(spark) -> None:
    f = el.where("id < 10", F.col("id") > 2)
    filtered = spark.range(100).transform(f)
    assert "ArrowEvalPython" not in filtered._jdf.queryExecution().executedPlan().toString()
    assert filtered.count() == 7
    assert "nothing to route" in str(f.report())


@pytest.mark.parametrize("policy", ["agreedy", "content", "auto", el.AGreedy()])
def test_policies_that_leave_native_conditions_as_written_say_so(spark, policy) -> None:
    f = el.where("id < 10", F.col("id") > 2, policy=policy)
    assert spark.range(100).transform(f).count() == 7
    text = " ".join(str(f.report()).split())
    name = policy if isinstance(policy, str) else "agreedy"
    assert f'native predicates keep their written order: policy "{name}" orders' in text


def test_a_single_native_condition_has_no_order(spark) -> None:
    f = el.where("id < 10", el.udf(lambda i: i > 2, "id"), policy="sweep")
    assert spark.range(100).transform(f).count() == 7
    assert not f.report().native_as_written


def test_a_nondeterministic_predicate_keeps_its_written_place(spark, tmp_path) -> None:
    log = tmp_path / "seen"

    def sampler(i):
        with open(log, "a") as out:
            out.write(f"{i}\n")
        return True

    f = el.where(
        el.udf(lambda i: i % 2 == 0, "id", name="even"),
        el.udf(sampler, "id", deterministic=False),
        el.udf(lambda i: i % 3 == 0, "id", name="third"),
        "id < 50",
    )
    assert ids(spark.range(0, 100, 1, 1).transform(f)) == list(range(0, 50, 6))
    # The sampler saw every even row: neither "third" nor Spark's own condition came before it.
    assert sorted(map(int, log.read_text().split())) == list(range(0, 100, 2))


def test_a_nondeterministic_condition_of_spark_stays_between_python_predicates(spark) -> None:
    f = el.where(
        el.udf(lambda i: i % 2 == 0, "id", name="even"),
        "rand(7) >= 0",
        el.udf(lambda i: i < 10, "id", name="small"),
    )
    assert ids(spark.range(100).transform(f)) == [0, 2, 4, 6, 8]
    assert [line.name for line in f.report().lines] == ["even", "rand(7) >= 0", "small"]


def test_udfs_marked_nondeterministic_are_recognised() -> None:
    function = F.udf(lambda a: True, "boolean").asNondeterministic()
    assert el.udf(function, "a").deterministic is False
    assert el.udf(function, "a", deterministic=True).deterministic is True


@pytest.mark.parametrize("on_error", ["drop", "keep"])
def test_errors_are_held_back_per_row(spark, on_error: str) -> None:
    df = spark.createDataFrame([(1, 2), (2, 0), (3, 0), (4, 4)], "id int, v int")

    def inverse(v):
        return 1 / v < 0.4  # raises on zero

    @F.pandas_udf("boolean")
    def fragile(v: pd.Series) -> pd.Series:
        if (v == 4).any():
            raise ValueError("four")
        return v >= 0

    f = el.where(
        el.udf(inverse, "v"), el.udf(fragile, "v"), "id != 99",
        el.udf(lambda i: i != 3, "id", name="not_three"), on_error=on_error,
    )  # fmt: skip
    kept = {"drop": [], "keep": [2, 4]}[on_error]
    assert ids(df.transform(f)) == kept


def test_an_error_of_a_dropped_row_does_not_fail_the_job(spark) -> None:
    df = spark.createDataFrame([(1, 2), (2, 0)], "id int, v int")
    f = el.where(el.udf(lambda v: 1 / v > 0, "v"), el.udf(lambda i: i == 1, "id", name="one"))
    assert ids(df.transform(f)) == [1]


def test_a_sample_gives_the_first_order(spark) -> None:
    df = spark.range(0, 5_000, 1, 1)
    predicates = [
        el.udf(lambda i: i % 10 != 0, "id", name="passes_most"),
        el.udf(lambda i: i % 10 == 1, "id", name="drops_most"),
    ]
    f = el.where(*predicates, sample=df, seed=0)
    assert df.transform(f).count() == 500
    starts = f.journal().of(KnowledgeRestored)
    assert starts
    assert all(r.numbers["order"][0] == "drops_most" for r in starts)


def test_a_rebuilt_plan_starts_from_what_was_learnt(spark) -> None:
    predicates = [
        el.udf(lambda i: i % 10 != 0, "id", name="passes_most"),
        el.udf(lambda i: i % 10 == 1, "id", name="drops_most"),
    ]
    f = el.where(*predicates, seed=0)
    df = spark.range(0, 20_000, 1, 2)
    assert df.transform(f).count() == 2_000
    first = f.report()
    assert first.rows == 20_000
    assert first.evaluations < first.evaluations_by_spark
    assert any(isinstance(r.event, OrderChanged) for r in first.changes)
    assert df.transform(f).count() == 2_000
    again = f.report()
    assert again.rows == 40_000
    starts = f.journal().of(KnowledgeRestored)
    assert starts
    assert all(r.numbers["order"][0] == "drops_most" for r in starts)


def test_a_second_action_on_the_same_dataframe(spark) -> None:
    f = el.where(el.udf(lambda i: i % 2 == 0, "id"), seed=0)
    filtered = spark.range(1_000).transform(f)
    assert filtered.count() == 500
    assert filtered.count() == 500
    assert f.report().rows == 1_000  # Spark observes the first action only, as the report says
    assert "covers the first action on 1 DataFrame." in " ".join(str(f.report()).split())
    assert spark.range(500).transform(f).count() == 250
    lines = [(line.name, line.rows, line.kept) for line in f.report().actions]
    assert lines == [
        ("DataFrame 1, first action", 1_000, 500),
        ("DataFrame 2, first action", 500, 250),
    ]


def test_rows_on_which_a_predicate_raised_did_not_pass_it(spark) -> None:
    @F.pandas_udf("boolean")
    def fragile(i: pd.Series) -> pd.Series:
        if (i % 10 == 3).any():
            raise ValueError("three")
        return i % 10 != 4

    f = el.where(
        el.udf(lambda i: 1 / (i % 10) > 0, "id", name="inverse"),  # raises on a tenth
        el.udf(fragile, "id"),
        on_error="drop",
        seed=0,
    )
    assert spark.range(0, 200, 1, 1).transform(f).count() == 140
    report = f.report()
    inverse, vectorised = report.lines
    assert (inverse.failed, inverse.passed) == (inverse.seen // 10, inverse.seen * 9 // 10)
    assert vectorised.failed == 20
    assert report.at_fault == 40
    assert "40 rows that no predicate dropped, and on which one raised, were dropped" in (
        " ".join(str(report).split())
    )


def test_long_texts_are_not_called_constant(spark) -> None:
    df = spark.range(0, 2_000, 1, 1).selectExpr("id", "concat(repeat('long', 20), id) AS body")
    f = el.where(
        el.udf(lambda i: i % 2 == 0, "id", name="even"),
        el.udf(lambda i: i % 3 == 0, "id", name="third"),
        policy="mesh",
        sample=df,
        seed=0,
    )
    assert df.transform(f).count() == 334
    assert f.report().rejected["body"] == "every text is longer than 40 characters or NULL"


def test_the_filtered_dataframe_can_be_used_twice_in_one_plan(spark) -> None:
    f = el.where(el.udf(lambda i: i % 2 == 0, "id", name="even"), seed=0)
    even = spark.range(0, 100, 1, 2).transform(f)
    assert even.union(even).count() == 100
    assert even.join(even, "id").count() == 50


def test_columns_with_odd_names(spark) -> None:
    df = spark.createDataFrame([(1, 5), (2, 6)], "id int, `a.b c` int")
    f = el.where(el.udf(lambda v: v == 6, "a.b c", name="six"))
    assert ids(df.transform(f)) == [2]
    table = spark.createDataFrame([(5,)], "k int")
    assert ids(df.transform(el.where(el.lookup(table, on={"a.b c": "k"})))) == [1]


def test_an_ambiguous_column_is_named(spark) -> None:
    df = spark.range(3).join(spark.range(3).withColumnRenamed("id", "other"), on=None, how="cross")
    twice = df.select("id", F.col("other").alias("id"))
    with pytest.raises(el.InvalidPredicateError, match=r"'p': no column 'id'.*(?i:ambiguous)"):
        twice.transform(el.where(el.udf(lambda i: True, "id", name="p")))


def test_a_cached_result(spark) -> None:
    f = el.where(el.udf(lambda i: i % 2 == 0, "id", name="even"), seed=0)
    cached = spark.range(0, 1_000, 1, 2).transform(f).cache()
    assert (cached.count(), cached.count()) == (500, 500)
    assert f.report().kept == 500
    cached.unpersist()


def test_columns_that_print_alike_are_kept_apart(spark) -> None:
    left = spark.createDataFrame([(1, 10), (2, 20)], "id int, v int")
    right = spark.createDataFrame([(1, 5), (2, 50)], "id int, v int")
    joined = left.join(right, left["id"] == right["id"]).select(left["id"], left["v"], right["v"])
    both = left.alias("l").join(right.alias("r"), F.col("l.id") == F.col("r.id"))
    f = el.where(
        el.udf(lambda v: v >= 10, F.col("l.v"), name="left"),
        el.udf(lambda v: v >= 10, F.col("r.v"), name="right"),
    )
    assert joined.count() == 2
    assert [r[0] for r in both.transform(f).select("l.id").collect()] == [2]
    rng = el.where(
        el.udf(lambda i: True, "id", name="a"),
        "rand() < 0.5",
        el.udf(lambda i: True, "id", name="b"),
        "rand() < 0.5",
        el.udf(lambda i: True, "id", name="c"),
    )
    assert 0.2 < spark.range(4_000).transform(rng).count() / 4_000 < 0.3


@pytest.mark.parametrize(
    ("condition", "deterministic"),
    [
        ("rand() < 0.5", False),
        ("`rand`() < 0.5", False),
        ("try_reflect('java.util.UUID', 'randomUUID') IS NULL", False),
        ("text LIKE '%rand (%'", True),
        ("brand(1) > 0", True),
    ],
)
def test_nondeterministic_functions_of_spark_are_known_by_name(condition, deterministic) -> None:
    assert el.where(condition).predicates[0].deterministic is deterministic


def test_a_predicate_used_twice_keeps_its_own_name(spark) -> None:
    predicate = el.udf(lambda i: i % 2 == 0, "id", name="even")
    f = el.where(predicate, predicate)
    assert spark.range(10).transform(f).count() == 5
    assert [line.name for line in f.report().lines] == ["even", "even#2"]
    assert predicate.name == "even"


def test_concurrent_use_of_one_where(spark) -> None:
    from concurrent.futures import ThreadPoolExecutor

    f = el.where(el.udf(lambda i: i % 2 == 0, "id", name="even"), seed=0)
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda n: spark.range(n).transform(f).count(), [10, 20, 30, 40]))
    assert counts == [5, 10, 15, 20]
    assert f.report().rows == 100


def test_an_alias_is_the_name_of_a_condition(spark) -> None:
    condition = " AND ".join(f"id != {number}" for number in range(100, 140))
    f = el.where(
        (F.col("id") > 2).alias("not small"),
        F.expr("concat('a', id) != 'x AS y'"),
        F.expr(condition),
        name="numbers",
    )
    assert ids(spark.range(10).transform(f)) == list(range(3, 10))
    names = [line.name for line in f.report().lines]
    assert names[0] == "not small"
    assert names[1].startswith("concat(")
    assert "'numbers' (policy auto, on_error raise): not small [spark], concat(" in repr(f)
    assert "… [spark]>" in repr(f)
    assert max(map(len, str(f.report()).splitlines())) <= 80


def test_a_shared_value_gives_the_rows_of_sparks_filter(spark) -> None:
    import json

    df = spark.range(0, 600, 1, 2).selectExpr(
        "id", "if(id % 7 = 0, 'broken', to_json(struct(id % 10 AS n, id % 3 AS k))) AS body"
    )
    doc = el.shared(json.loads, "body", name="doc")
    f = el.where(
        el.udf(lambda doc: doc["n"] > 4, doc, name="n"),
        el.udf(lambda doc, i: doc["k"] == i % 3, doc, "id", name="k"),
        el.udf(lambda i: i % 7 != 0, "id", name="sound"),
        seed=0,
    )
    assert ids(df.transform(f)) == [i for i in range(600) if i % 7 and i % 10 > 4]
    assert repr(doc) == "el.shared(doc, 'body')"
    with pytest.raises(Exception, match="broken") as caught:
        df.transform(el.where(el.udf(lambda doc: True, doc, name="any"))).count()
    assert el.error_of(caught.value).row == {"body": "'broken'"}


def test_a_memory_gives_the_first_rows_of_the_next_program_their_order(spark, tmp_path) -> None:
    path = tmp_path / "memory.json"

    def make() -> el.Where:
        return el.where(
            el.udf(lambda i: i % 10 != 0, "id", name="passes_most"),
            el.udf(lambda i: i % 10 == 1, "id", name="drops_most"),
            seed=0,
            memory=path,
        )

    df = spark.range(0, 20_000, 1, 2)
    assert df.transform(make()).count() == 2_000
    deadline = time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:  # nobody asked for a report
        time.sleep(0.05)
    again = make()
    assert df.transform(again).count() == 2_000
    starts = again.journal().of(KnowledgeRestored)
    assert starts
    assert all((r.at_rows, r.numbers["order"][0]) == (0, "drops_most") for r in starts)
    with pytest.warns(UserWarning, match="predicates or the policy have changed"):
        el.where(el.udf(lambda i: True, "id", name="other"), memory=path)
