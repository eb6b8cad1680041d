"""Tests of the answers of a Python function, with the three-valued logic of SQL."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eddyline.operators import Batch, ColumnReader
from eddyline.operators.answer import ComparedAnswer

HUGE = 2**53 + 1


@pytest.mark.parametrize(
    ("returns", "answers", "comparison", "constant", "passed"),
    [
        ("boolean", [True, False, None], "not", None, [False, True, False]),
        ("boolean", [True, False, None], "is null", None, [False, False, True]),
        ("boolean", [True, False, None], "is not null", None, [True, True, False]),
        ("boolean", [True, False, None], "is not true", None, [False, True, True]),
        ("boolean", [True, False, None], "is not false", None, [True, False, True]),
        ("int", [1, 2, None], "in", (1, 3), [True, False, False]),
        ("int", [1, 2, None], "in", (1, None), [True, False, False]),
        ("int", [1, 2, None], "not in", (1, 3), [False, True, False]),
        ("int", [1, 2, None], "not in", (1, None), [False, False, False]),
        ("int", [1, 2, None], "in", (None,), [False, False, False]),
        ("int", [1, 2, None], "in", (Decimal("1.0"), Decimal("2.5"), 2**70), [True, False, False]),
        ("int", [1, 2, None], "in", (1.0, Decimal("2.5")), [True, False, False]),
        ("bigint", [HUGE, HUGE - 1, 0], "in", (HUGE,), [True, False, False]),
        ("bigint", [HUGE, HUGE - 1, 0], "=", Decimal(HUGE), [True, False, False]),
        ("bigint", [HUGE, HUGE - 1, 0], "<", 2**70, [True, True, True]),
        ("double", [1.0, 2.5, math.nan], "in", (1, Decimal("2.5")), [True, True, False]),
        ("double", [1.0, 2.5, math.nan], "not in", (1,), [False, True, True]),
        ("double", [float(HUGE), 0.0, math.nan], "=", HUGE, [True, False, False]),
        ("double", [1.0, 2.5, math.nan], ">", 2**70, [False, False, True]),
        ("double", [-1.0, 0.5, math.nan], ">", 0, [False, True, True]),
        ("double", [-1.0, 0.5, math.nan], "<=", 0.0, [True, False, False]),
        ("string", ["a", "b", None], "in", ("a", None), [True, False, False]),
        ("string", ["a", "b", None], "not in", ("a",), [False, True, False]),
    ],
)
def test_answers_are_tested_as_in_sql(
    returns: str, answers: list[Any], comparison: str, constant: Any, passed: list[bool]
) -> None:
    batch = Batch([pa.array(range(len(answers)))], [ColumnReader("n")])
    test = ComparedAnswer("f", (0,), lambda n: answers[n], returns, comparison, constant)
    assert test.evaluate(batch, None).passed.tolist() == passed


@pytest.mark.parametrize(
    ("other_answers", "passed"), [("cast", [True, True, False]), ("null", [False, True, False])]
)
def test_an_answer_of_another_type_is_cast_or_null(other_answers, passed: list[bool]) -> None:
    answers = ["7", 8, None]
    batch = Batch([pa.array(range(3))], [ColumnReader("n")])
    test = ComparedAnswer("f", (0,), lambda n: answers[n], "int", ">", 5, other_answers)
    assert test.evaluate(batch, None).passed.tolist() == passed
