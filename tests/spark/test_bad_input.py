"""Bad input: a clear error that names the predicate or column and the fix, before the job."""

from __future__ import annotations

import pickle

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import functions as F

import eddyline as el
from eddyline.journal.events import KnowledgeRestored


@pytest.fixture
def df(spark):
    return spark.createDataFrame([(1, "x"), (2, "y")], "id int, text string")


def keep(*_):
    return True


def test_no_predicates() -> None:
    with pytest.raises(el.InvalidPredicateError, match="at least one predicate"):
        el.where()


def test_wrong_column(df) -> None:
    with pytest.raises(el.InvalidPredicateError, match=r"'keep': no column 'body'.* id, text"):
        df.transform(el.where(el.udf(keep, "body")))


def test_wrong_column_in_sql_text(df) -> None:
    with pytest.raises(el.InvalidPredicateError, match="'length\\(body\\) > 1' cannot be"):
        df.transform(el.where("length(body) > 1"))


def test_unparsable_sql_text(df) -> None:
    with pytest.raises(el.InvalidPredicateError, match="'text >' cannot be evaluated by Spark"):
        df.transform(el.where("text >"))


def test_sql_text_that_is_no_condition(df) -> None:
    with pytest.raises(el.InvalidPredicateError, match="'upper\\(text\\)' cannot be evaluated"):
        df.transform(el.where("upper(text)"))


def test_empty_sql_text() -> None:
    with pytest.raises(el.InvalidPredicateError, match="empty string is not a predicate"):
        el.where("  ")


def test_a_bare_function() -> None:
    with pytest.raises(el.InvalidPredicateError, match=r'el\.udf\(keep, "column"\)'):
        el.where(keep)


def test_something_else() -> None:
    with pytest.raises(el.InvalidPredicateError, match="int is not a predicate"):
        el.where(5)


def test_udf_of_no_function() -> None:
    with pytest.raises(el.InvalidPredicateError, match="needs a function, not str"):
        el.udf("length(text) > 1", "text")


def test_wrong_number_of_columns() -> None:
    with pytest.raises(el.InvalidPredicateError, match=r"'one' cannot be called with 2 column"):
        el.udf(lambda a: True, "a", "b", name="one")


def test_wrong_declared_return_type(spark) -> None:
    with pytest.raises(el.InvalidPredicateError, match=r"declared to return string.*boolean"):
        el.udf(F.udf(lambda a: "x"), "a")


def test_a_grouped_function(spark) -> None:
    @F.pandas_udf("double")
    def mean(v: pd.Series) -> float:
        return v.mean()

    with pytest.raises(el.InvalidPredicateError, match="grouped, aggregating or table function"):
        el.udf(mean, "a")


def test_wrong_type_of_answer(df) -> None:
    with pytest.raises(Exception, match=r"'size' raised .* returned int \(1\), not a"):
        df.transform(el.where(el.udf(len, "text", name="size"))).count()


def test_wrong_number_of_answers(df) -> None:
    @F.arrow_udf("boolean")
    def short(text: pa.Array) -> pa.Array:
        return pa.array([True])

    with pytest.raises(Exception, match="'short' returned 1 values for 2 rows"):
        df.coalesce(1).transform(el.where(el.udf(short, "text"))).count()


def test_a_predicate_that_raises_names_the_row(df) -> None:
    f = el.where(el.udf(lambda text: text[5] == "z", "text", name="fifth"))
    with pytest.raises(Exception, match=r"'fifth' raised IndexError.*\n.*text='x'"):
        df.coalesce(1).transform(f).count()


def test_the_error_of_a_predicate_can_be_told_from_others(df) -> None:
    f = el.where(el.udf(lambda i, text: text[5] == "z", "id", "text", name="fifth"))
    with pytest.raises(Exception, match="fifth") as caught:
        df.coalesce(1).transform(f).count()
    error = el.error_of(caught.value)
    assert isinstance(error, el.PredicateFailedError)
    assert (error.predicate, error.row) == ("fifth", {"id": "1", "text": "'x'"})
    assert error.error == "IndexError: string index out of range"


def test_unknown_policy() -> None:
    with pytest.raises(el.InvalidPolicyError, match="unknown policy 'fast'; choose one of auto"):
        el.where("a > 1", policy="fast")


def test_unknown_on_error() -> None:
    with pytest.raises(el.EddylineError, match="must be 'raise', 'drop' or 'keep'"):
        el.where("a > 1", on_error="log")


def test_not_a_dataframe() -> None:
    with pytest.raises(el.EddylineError, match="applied to a Spark DataFrame, not to list"):
        el.where("a > 1")([1, 2])


class TestLookup:
    def test_key_missing_in_the_table(self, df) -> None:
        with pytest.raises(el.LookupTableError, match=r"table has no column 'domain'.*id, text"):
            el.lookup(df, on="domain")

    def test_key_missing_in_the_dataframe(self, spark, df) -> None:
        table = spark.createDataFrame([("a",)], "domain string")
        with pytest.raises(el.InvalidPredicateError, match="no column 'domain'"):
            df.transform(el.where(el.lookup(table, on="domain")))

    def test_table_too_large(self, spark, df) -> None:
        table = spark.range(100).withColumn("id", F.col("id").cast("int"))
        f = el.where(el.lookup(table, on="id", rows_max=99, name="ids"))
        with pytest.raises(el.LookupTableError, match="ids: the table has more than 99"):
            df.transform(f)
        assert df.transform(el.where(el.lookup(table, on="id", rows_max=100))).count() == 2

    def test_types_that_cannot_be_compared(self, spark, df) -> None:
        table = spark.createDataFrame([("1",)], "id string")
        with pytest.raises(el.LookupTableError, match="is int in the DataFrame and string in the"):
            df.transform(el.where(el.lookup(table, on="id")))
        lists = spark.createDataFrame([(1, [1])], "id int, text array<int>")
        with pytest.raises(el.LookupTableError, match="which a lookup cannot compare"):
            df.transform(el.where(el.lookup(lists, on="text")))

    def test_streaming_table(self, spark) -> None:
        stream = spark.readStream.format("rate").load()
        with pytest.raises(el.LookupTableError, match="a lookup needs a batch DataFrame"):
            el.lookup(stream, on="value")

    def test_no_table_and_no_keys(self, df) -> None:
        with pytest.raises(el.LookupTableError, match="needs a Spark DataFrame, not list"):
            el.lookup([1, 2], on="id")
        with pytest.raises(el.LookupTableError, match="name the key columns"):
            el.lookup(df, on=[])


def test_streaming_sample(spark, df) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(el.EddylineError, match="sample is a streaming DataFrame"):
        df.transform(el.where(el.udf(keep, "id"), sample=stream))


def test_workers_that_run_another_python(spark, df, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python-of-no-machine")
    with pytest.raises(el.EddylineError, match="export PYSPARK_PYTHON="):
        df.transform(el.where(el.udf(keep, "id")))
    with pytest.raises(el.EddylineError, match="export PYSPARK_PYTHON="):
        el.Engine(spark, tmp_path)
    assert df.transform(el.where("id > 1")).count() == 1  # no Python is needed


class TestPickling:
    def test_a_filter_takes_along_what_it_has_learnt(self, spark) -> None:
        predicates = [
            el.udf(lambda i: i % 10 != 0, "id", name="passes_most"),
            el.udf(lambda i: i % 10 == 1, "id", name="drops_most"),
        ]
        f = el.where("id >= 0", *predicates, name="mine", seed=0)
        rows = spark.range(0, 5_000, 1, 1)
        assert rows.transform(f).count() == 500
        f.report()
        copied = cloudpickle.loads(cloudpickle.dumps(f))
        assert repr(copied) == repr(f)
        assert copied.report().rows == 0
        assert rows.transform(copied).count() == 500
        starts = copied.journal().of(KnowledgeRestored)
        assert starts[0].numbers["order"][0] == "drops_most"

    def test_what_belongs_to_a_session_is_named(self, spark, df) -> None:
        for predicate in (F.col("id") > 1, el.lookup(df, on="id"), el.udf(keep, F.col("id"))):
            with pytest.raises(el.EddylineError, match=r"cannot be pickled: .* returns el\.where"):
                pickle.dumps(el.where(predicate))
        with pytest.raises(el.EddylineError, match="its sample is a DataFrame"):
            pickle.dumps(el.where("id > 1", sample=df))


class TestShared:
    def test_what_cannot_be_shared(self, spark) -> None:
        with pytest.raises(el.InvalidPredicateError, match="a plain function, not str"):
            el.shared("body", "id")
        with pytest.raises(el.InvalidPredicateError, match="not a PySpark udf"):
            el.shared(F.udf(keep, "boolean"), "id")
        with pytest.raises(el.InvalidPredicateError, match="cannot be called with 2 column"):
            el.shared(lambda a: a, "a", "b")

    def test_where_it_cannot_be_used(self, df) -> None:
        doc = el.shared(len, "text")
        with pytest.raises(el.InvalidPredicateError, match="is a value, not a predicate"):
            el.where(doc)
        with pytest.raises(el.InvalidPredicateError, match="called once a row"):
            el.udf(F.arrow_udf(lambda a: a, "boolean"), doc)
        with pytest.raises(el.InvalidPredicateError, match="'p': no column 'body'"):
            df.transform(el.where(el.udf(keep, el.shared(len, "body"), name="p")))
