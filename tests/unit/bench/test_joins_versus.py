"""An engine against Spark: figures, the check of results, conditions of Spark's chain."""

from __future__ import annotations

import dataclasses
import pathlib

import pyarrow as pa
import pytest

from eddyline.bench import joins_versus
from eddyline.bench.harness import Bench, Result
from eddyline.bench.joins_case import JoinCase, Side, Streams
from eddyline.bench.joins_runs import Contest, Outcome
from eddyline.bench.joins_versus import check_same, contend
from eddyline.errors import EddylineError

OWN = Outcome(
    seconds=0.5,
    total_s=3.0,
    batches=6,
    results=300,
    checksum=7,
    written_bytes=2_000_000,
    state_rows=150,
    state_bytes=1_000_000,
    candidates=900,
    matches=450,
    first_result_s=2.0,
)
RIVAL = dataclasses.replace(
    OWN, seconds=1.5, state_bytes=4_000_000, written_bytes=5_000_000, first_result_s=5.0
)
CASE = JoinCase("two", [Side("a", "x", ("v",), 500), Side("b", "y", ("v",), 500)], [("a.k", "b.k")])


@pytest.fixture
def contest(tmp_path: pathlib.Path) -> Contest:
    streams = Streams(tmp_path)
    streams.rows = {"x": 400, "y": 200}
    return Contest.of(CASE, streams)


def figures(contest: Contest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Result]:
    """Return the figures of runs that come to the same every time."""

    def run_rival(spark: object, contest: Contest, store: dict[str, str]) -> Outcome:
        # Spark is faster with the store that has no settings.
        return dataclasses.replace(RIVAL, seconds=RIVAL.seconds + len(store))

    monkeypatch.setattr(joins_versus, "run_engine", lambda *_: OWN)
    monkeypatch.setattr(joins_versus, "run_rival", run_rival)
    bench = Bench("joins", rounds=5)
    contend(bench, None, contest)
    return {result.metric: result for result in bench.results}


def test_spark_runs_with_the_faster_store(
    contest: Contest, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = figures(contest, monkeypatch)
    assert {metric: result.value for metric, result in results.items()} == {
        "two: time, Spark / engine": 3.0,
        "two: time from start to first results, Spark / engine": 2.5,
        "two: candidates a match": 2.0,
        "two: state rows, engine / rows of a micro-batch": 1.5,
        "two: state bytes, Spark / engine": 4.0,
        "two: bytes written, Spark / engine": 2.5,
    }
    baseline = str(results["two: time, Spark / engine"].baseline)
    # Half a second for the 100 rows of a micro-batch, which have 50 results.
    assert baseline.startswith("engine 5000.00 us a row, 10000.00 us a result; control 1.00")
    assert "default store" in baseline


def test_an_engine_alone_has_a_time_of_its_own(
    contest: Contest, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = figures(dataclasses.replace(contest, rival=None), monkeypatch)
    assert results["two: time a row"].value == 5000.0
    assert results["two: bytes written"].value == 2.0


@pytest.mark.parametrize("change", [{"results": 299}, {"checksum": 8}])
def test_other_results_are_an_error(change: dict[str, int]) -> None:
    check_same("two", [OWN, OWN], [RIVAL])
    with pytest.raises(EddylineError, match=r"two: .* are not the same"):
        check_same("two", [OWN], [RIVAL, dataclasses.replace(RIVAL, **change)])
    with pytest.raises(EddylineError, match=r"two: .* are not the same"):
        check_same("two", [OWN, dataclasses.replace(OWN, **change)], [])


def test_no_results_are_an_error() -> None:
    empty = dataclasses.replace(OWN, results=0, checksum=0)
    with pytest.raises(EddylineError, match="two: no results"):
        check_same("two", [empty], [empty])


def test_a_chain_has_the_windows_of_all_pairs() -> None:
    sides = [Side("a", "x", (), 100), Side("b", "y", (), 200), Side("c", "z", (), 300)]
    case = JoinCase("three", sides, [("a.k", "b.k"), ("b.j", "c.j")])
    assert case.condition_of(1).split(" AND ")[0] == "a_k = b_k"
    assert case.condition_of(2).split(" AND ") == [
        "b_j = c_j",
        "c_ts > a_ts - INTERVAL 300 MILLISECONDS",
        "c_ts < a_ts + INTERVAL 100 MILLISECONDS",
        "b_us - c_us < 300000",
        "c_us - b_us < 200000",
    ]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_later_micro_batches_have_younger_files(kind: str, tmp_path: pathlib.Path) -> None:
    streams = Streams(tmp_path, kind=kind)
    streams.write("x", [pa.table({"k": [number]}) for number in range(3)])
    files = sorted((tmp_path / "x").iterdir())
    ages = [file.stat().st_mtime for file in files]
    assert ages == [0, 1, 2]  # not the times at which they were written
    assert streams.rows == {"x": 3}
    if kind == "csv":
        assert [file.read_text() for file in files] == ["0\n", "1\n", "2\n"]  # no header
