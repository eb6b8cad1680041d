"""Registered functions as Spark calls them: with a time limit on each call."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from eddyline.errors import EngineError, TimeLimitError
from eddyline.spark.engine.functions import check_timeout, limited


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf"), "60", True])
def test_a_limit_that_is_no_duration_is_refused(timeout_s: object) -> None:
    with pytest.raises(EngineError, match="function 'f': timeout_s must be a number of seconds"):
        check_timeout("f", timeout_s)  # type: ignore[arg-type]


def test_a_call_that_takes_too_long_names_the_function() -> None:
    with pytest.raises(TimeLimitError, match=r"'slow' took longer than its limit of 0.1 s"):
        limited("slow", time.sleep, "row", 0.1)(30)
    assert limited("free", time.sleep, "row", None) is time.sleep


def test_an_iterator_function_is_not_blamed_for_waiting_for_its_batches() -> None:
    def batches() -> Iterator[int]:
        for number in range(3):
            time.sleep(0.15)
            yield number

    doubled = limited("double", lambda given: (2 * b for b in given), "arrow_iterator", 0.1)
    assert list(doubled(batches())) == [0, 2, 4]

    def slow(given: Iterator[int]) -> Iterator[int]:
        for number in given:
            time.sleep(30 * number)
            yield number

    answers = limited("slow", slow, "arrow_iterator", 0.1)(iter([0, 1]))
    assert next(answers) == 0
    with pytest.raises(TimeLimitError, match="'slow'"):
        next(answers)
