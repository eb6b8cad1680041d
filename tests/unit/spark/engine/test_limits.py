"""Limits that the guides name: streams of a join, time for learning, jobs for a search."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

import eddyline as el
from eddyline.spark.engine import bad_rows, native_routes
from eddyline.spark.engine.bad_rows import BadRowSearch
from eddyline.spark.engine.join_compiler import JoinCompiler
from eddyline.spark.engine.native_routes import NativeGroup, NativeRoutes


@pytest.mark.parametrize(("streams", "error"), [(10, LookupError), (11, el.QueryError)])
def test_a_query_joins_at_most_ten_streams(streams: int, error: type[Exception]) -> None:
    compiler = JoinCompiler(mock.Mock(), mock.Mock(side_effect=LookupError), mock.Mock())
    parts = [SimpleNamespace(stream="s")] * streams
    compiled: Any = SimpleNamespace(query=SimpleNamespace(join=SimpleNamespace(parts=parts)))
    with pytest.raises(error):
        compiler.compile(compiled)


def test_learning_takes_at_most_two_percent_and_groups_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, learnt = [0.0], []
    routes = NativeRoutes([], mock.Mock())

    def learn_from(df: object, group: NativeGroup) -> object:
        clock[0] += 4.0
        learnt.append(group.query)
        return SimpleNamespace(order=(0, 1), mesh=None)

    monkeypatch.setattr(native_routes.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(routes, "_learn_from", learn_from)
    groups = [NativeGroup(name, 0, (), (f"{name} 1", f"{name} 2")) for name in "ab"]
    for seconds in range(1, 1_201):
        routes.learn(mock.Mock(), 10_000, 1.0, groups)
        assert 4.0 * len(learnt) <= 0.02 * seconds + 1.0  # the first is expected to take 3 s
    assert learnt == ["a", "b", "a", "b", "a", "b"]


def search(rows: int, bad: set[int]) -> tuple[list[bad_rows.BadRow] | None, int]:
    """Search so many stored rows; return those that are bad, and the number of jobs."""
    stored = mock.MagicMock()
    stored.select().limit().collect.return_value = [{"file": "f", "index": n} for n in range(rows)]
    results = mock.Mock()
    results.rows.return_value = stored
    results.results.side_effect = lambda compiled, stream, parts, within=(0, -1): within
    jobs = itertools.count()

    def failure_of(frames: list[tuple[int, int]]) -> Exception | None:
        next(jobs)
        return ValueError() if bad & set(range(frames[0][0], frames[0][1] + 1)) else None

    found = BadRowSearch(results, mock.Mock(number=0), mock.Mock(), failure_of)
    with (
        mock.patch.object(bad_rows, "ResultPart"),
        mock.patch.object(bad_rows, "replace"),
        mock.patch.object(bad_rows, "_between", lambda first, last: (first[1], last[1])),
        mock.patch.object(bad_rows, "describe_values", return_value="id=1"),
    ):
        return found.find(0, mock.Mock()), next(jobs)


def test_rows_on_which_a_select_fails_are_found_by_halves() -> None:
    found, jobs = search(64, {5, 40})
    assert found is not None
    assert [row.place[1] for row in found] == [5, 40]
    assert jobs <= 2 * 2 * 6 + 1


def test_a_search_for_bad_rows_ends_after_a_hundred_jobs() -> None:
    found, jobs = search(1_000, set(range(1_000)))
    assert found is None
    assert jobs == 100
