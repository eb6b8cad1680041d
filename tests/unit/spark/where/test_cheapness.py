"""Which predicates are too cheap for further columns to cross into Python."""

from __future__ import annotations

import functools
import json
import re

import numpy as np
import pytest

import eddyline as el
from eddyline.fabric.knowledge import OrderKnowledge
from eddyline.spark.where.cheapness import columns_that_pay, looks_cheap, looks_costly

LIMIT = 7
PATTERN = re.compile("x+")


class Model:
    def predict(self, text):
        return len(text) > 3


MODEL = Model()


def counts_words(text):
    words = 0
    for _ in text.split():
        words += 1
    return words


def closed_over(value):
    return lambda a: not value(a)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a < 700,
        lambda a: a is not None and a % 3 == LIMIT,
        lambda text: text.lower().startswith("x"),
        lambda a, b: a < b or abs(a - b) > 2,
        lambda text: PATTERN.search(text) is not None,
        lambda a: json.loads(a)["x"] == 3,
        PATTERN.search,
        functools.partial(max, 3),
        closed_over(len),
    ],
)
def test_comparisons_and_what_comes_with_python_look_cheap(function) -> None:
    assert not looks_costly(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda text: any(c == "x" for c in text),
        counts_words,
        lambda text: counts_words(text) > 3,
        lambda text: not MODEL.predict(text),
        lambda a: np.log(a) > 3,
        MODEL.predict,
        functools.partial(counts_words),
        closed_over(MODEL.predict),
    ],
)
def test_loops_libraries_and_objects_of_other_classes_look_costly(function) -> None:
    assert looks_costly(function)


#: Columns that could classify rows, and whether they are texts.
COLUMNS = {"kind": True, "size": False, "site": True}


def crossing(given, *known, asked=False) -> set[str]:
    """Return the columns that cross for predicates."""
    return columns_that_pay(COLUMNS, given, known, asked)[0]


def predicates(*functions):
    return [el.udf(function, "a", name=f"p{n}") for n, function in enumerate(functions)]


def test_one_predicate_that_may_be_expensive_is_enough() -> None:
    assert crossing(predicates(lambda a: a < 3, lambda a: a > 1)) == set()
    assert crossing(predicates(lambda a: a < 3, counts_words)) == set(COLUMNS)


@pytest.mark.parametrize(("cost_us", "is_cheap"), [((0.3, 0.5), True), ((0.3, 30.0), False)])
def test_measured_costs_decide_whatever_the_code_looks_like(cost_us, is_cheap) -> None:
    known = OrderKnowledge((0, 1), cost_us, np.zeros((0, 2), dtype=bool))
    both = predicates(counts_words, lambda a: a < 3)
    assert crossing(both, known) == (set() if is_cheap else set(COLUMNS))


def test_regular_expressions_pay_for_a_few_columns_numbers_first() -> None:
    assert crossing(predicates(PATTERN.search, lambda a: a < 3)) == {"size"}
    assert crossing(predicates(PATTERN.search, lambda text: not PATTERN.search(text))) == {
        "size",
        "kind",
    }


class TestWhereThePolicyAsksForClasses:
    """Columns stay out only where it is plain that they do not pay."""

    @pytest.mark.parametrize(
        "function",
        [
            lambda a: a < 700,
            lambda a: a is not None and abs(a) % 3 == LIMIT,
            lambda text: len(text) > 200 and "x" in text,
            closed_over(lambda a: a > 3),
        ],
    )
    def test_comparisons_are_plainly_cheap(self, function) -> None:
        assert looks_cheap(function)
        assert crossing(predicates(function, lambda a: a < 3), asked=True) == set()

    @pytest.mark.parametrize(
        "function",
        [
            lambda text: PATTERN.search(text) is not None,
            lambda a: json.loads(a)["x"] == 3,
            lambda text: len(text.split()) > 3,
            lambda text: sorted(text)[0] == "a",
            lambda text: counts_words(text) > 3,
            closed_over(MODEL.predict),
            PATTERN.search,
        ],
    )
    def test_what_may_take_longer_lets_columns_cross(self, function) -> None:
        assert not looks_cheap(function)
        assert crossing(predicates(function, lambda a: a < 3), asked=True) == set(COLUMNS)

    def test_functions_of_whole_columns_may_take_long(self) -> None:
        (vectorised,) = predicates(lambda a: a > 3)
        vectorised.kind = "pandas"
        assert crossing([vectorised, *predicates(lambda a: a < 3)], asked=True) == set(COLUMNS)

    def test_a_shared_step_counts_as_part_of_the_predicate(self) -> None:
        words = el.shared(str.split, "text", name="words")
        long = el.udf(lambda words: len(words) > 2, words, name="long")
        assert crossing([long, *predicates(lambda a: a < 3)], asked=True) == set(COLUMNS)
        counted = el.udf(lambda count: count > 2, el.shared(counts_words, "text", name="count"))
        assert crossing([counted, *predicates(lambda a: a < 3)]) == set(COLUMNS)

    def test_measured_costs_decide_whatever_the_code_looks_like(self) -> None:
        for cost_us, expected in (((0.3, 0.5), set()), ((0.3, 30.0), set(COLUMNS))):
            known = OrderKnowledge((0, 1), cost_us, np.zeros((0, 2), dtype=bool))
            both = predicates(lambda a: a > 1, lambda a: a < 3)
            assert crossing(both, known, asked=True) == expected
