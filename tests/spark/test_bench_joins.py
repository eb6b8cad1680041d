"""Benchmarks of joins against Spark: both sides give the same results."""

from __future__ import annotations

import pathlib

import pytest
from pyspark.sql import SparkSession

from eddyline.bench import joins, joins_flights, joins_nexmark
from eddyline.bench.flights_data import cut_by_time, read_flights
from eddyline.bench.harness import Bench
from eddyline.bench.joins_case import Streams
from eddyline.bench.joins_nexmark import CASES, write_streams
from eddyline.bench.joins_runs import Contest, Outcome, run_engine, run_rival
from eddyline.bench.joins_versus import check_same
from tests.unit.bench.test_flights_data import write_files


def run_both(spark: SparkSession, contest: Contest) -> tuple[Outcome, Outcome]:
    """Run a query by an engine and by Spark; their results must be the same."""
    own, rival = run_engine(spark, contest, 0), run_rival(spark, contest, {})
    check_same(contest.name, [own], [rival])
    return own, rival


@pytest.mark.slow
def test_nexmark_gives_the_same_as_spark(
    spark: SparkSession, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joins_nexmark, "BATCHES", 2)
    streams = write_streams(Bench("joins", quick=True), tmp_path)
    own, rival = run_both(spark, Contest.of(CASES[1], streams))
    assert own.candidates >= own.matches > 0
    assert min(own.state_rows, own.state_bytes, own.written_bytes) > 0
    assert min(rival.state_rows, rival.state_bytes, rival.written_bytes) > 0
    assert min(own.first_result_s, rival.first_result_s) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "figures"),
    [
        ("nexmark", 5 * 6 + 3),
        ("shapes", 9 * 6),
        ("spark", 2 * 3),
        ("queries", 3),
        ("nothing", 2),
        ("state", 1),
    ],
)
def test_parts_run(part: str, figures: int) -> None:
    bench = Bench("joins", quick=True, rounds=1, only=part)
    joins.run(bench)
    assert len(bench.results) == figures
    assert all(result.value > 0 for result in bench.results)


@pytest.mark.slow
def test_flights_give_the_same_as_spark(spark: SparkSession, tmp_path: pathlib.Path) -> None:
    write_files(tmp_path / "data")
    streams = Streams(tmp_path / "streams")
    for name, batches in cut_by_time(read_flights(tmp_path / "data"), 2).items():
        streams.write(name, batches)
    outcomes = [run_both(spark, Contest.of(case, streams)) for case in joins_flights.CASES]
    assert [own.results for own, _ in outcomes] == [2, 3, 2]
