"""Sinks that are functions: what they are called with, and how many results they take."""

from __future__ import annotations

import pytest

import eddyline as el


class Results:
    """Stands for a DataFrame of so many results."""

    def __init__(self, count: int) -> None:
        self._rows = list(range(count))

    def limit(self, count: int) -> Results:
        return Results(min(count, len(self._rows)))

    def collect(self) -> list[int]:
        return self._rows


def test_a_callback_is_called_with_the_rows_only_if_there_are_some() -> None:
    calls: list[list[int]] = []
    sink = el.callback(calls.append, rows_max=2)
    sink(Results(2), 0)
    sink(Results(0), 1)
    assert calls == [[0, 1]]


def test_more_results_than_a_callback_takes_are_an_error() -> None:
    calls: list[list[int]] = []
    with pytest.raises(el.EngineError, match="more than 2 results in one micro-batch"):
        el.callback(calls.append, rows_max=2)(Results(3), 0)
    el.callback(calls.append, rows_max=3)(Results(3), 0)
    assert calls == [[0, 1, 2]]
