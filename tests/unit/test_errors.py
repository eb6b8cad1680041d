"""The error of Eddyline in the text of an exception that Spark raised."""

from __future__ import annotations

import pickle

import pytest

import eddyline as el

JVM = "\n SQLSTATE: 38000\n\tat org.apache.spark.api.python.BasePythonRunner"


def raised_by_spark(error: Exception) -> Exception:
    text = f"Traceback (most recent call last):\neddyline.errors.{type(error).__name__}: {error}"
    return RuntimeError(f"[PYTHON_EXCEPTION] An exception: {text}{JVM}\nCaused by: {text}")


@pytest.mark.parametrize(
    ("predicate", "error", "row"),
    [
        ("calm", "ValueError: seven", {"text": "'x'", "n": "2"}),
        ('it\'s "odd"\n', "E: two\nlines\non the row: a=1", {"a": "'b=c'"}),
        ("p", "E: ", {"Column<'(a = 1)'>": "True", "'quoted'": "None", "line\nbreak": "1"}),
        ("p", "E: no columns", {}),
        ("p", "E: long", {"text": "'" + "x" * 199 + "... (3,000 characters)"}),
    ],
)
def test_what_a_predicate_raised_is_read_from_the_text(predicate, error, row) -> None:
    original = el.PredicateFailedError(predicate, error, row)
    read = el.error_of(raised_by_spark(original))
    assert isinstance(read, el.PredicateFailedError)
    assert (read.predicate, read.error, read.row) == (predicate, error, row)
    assert str(read) == str(original)


def test_an_answer_that_cannot_be_used() -> None:
    read = el.error_of(raised_by_spark(el.InvalidPredicateError("predicate 'p' returned 1 values")))
    assert isinstance(read, el.InvalidPredicateError)
    assert str(read) == "predicate 'p' returned 1 values"


def test_the_cause_of_an_exception_counts_too() -> None:
    outer = ValueError("outer")
    outer.__cause__ = raised_by_spark(el.PredicateFailedError("p", "E: x", {}))
    assert el.error_of(outer).predicate == "p"


def test_anything_else_is_none() -> None:
    assert el.error_of(ValueError("predicate 'p' raised E: x\non the row: a=1")) is None


def test_it_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(el.PredicateFailedError("p", "E: x", {"a": "1"})))
    assert (error.predicate, error.row, str(error)) == ("p", {"a": "1"}, str(error))
