"""Flink beside an engine: finding an interpreter, running it, and checking what it ran."""

from __future__ import annotations

import dataclasses
import importlib.util
import pathlib
import sys

import pytest
from typer.testing import CliRunner

from eddyline.bench import flink_job, joins_flink
from eddyline.bench.harness import Bench
from eddyline.bench.joins_flink import Answer, Request, find_flink, interval_sql, run_flink
from eddyline.bench.joins_runs import Outcome
from eddyline.cli.main import app
from eddyline.errors import EddylineError

REQUEST = Request({"s0": "a.csv"}, "SELECT 1", ("v0",), "results", "'connector' = 'x'", True, 2)
JOB = """
import json, pathlib, sys
request = json.loads(pathlib.Path(sys.argv[1]).read_text())
print("a warning of some library")
print(json.dumps({"version": "9", "seconds": [1.5] * request["runs"], "operators": ["Join"]}))
"""


def job(monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path, text: str) -> None:
    (folder / "job.py").write_text(text)
    monkeypatch.setattr(joins_flink, "_JOB", folder / "job.py")


def test_the_answer_is_the_last_line(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(monkeypatch, tmp_path, JOB)
    answer = run_flink(sys.executable, REQUEST, tmp_path)
    assert answer == Answer("9", [1.5, 1.5], ["Join"])


def test_a_failure_shows_what_flink_said(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(monkeypatch, tmp_path, "raise SystemExit('no slots')")
    with pytest.raises(EddylineError, match="Flink failed:\nno slots"):
        run_flink(sys.executable, REQUEST, tmp_path)


def test_an_endless_job_is_ended(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job(monkeypatch, tmp_path, "import time; time.sleep(60)")
    monkeypatch.setattr(joins_flink, "FLINK_S_MAX", 0.2)
    with pytest.raises(EddylineError, match="did not finish within"):
        run_flink(sys.executable, REQUEST, tmp_path)


@pytest.mark.parametrize("python", ["missing", "false"])
def test_without_pyflink_it_says_how_to_get_it(python: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / python
    if python == "false":
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
    with pytest.raises(EddylineError, match=r"pip install apache-flink.* --flink"):
        find_flink(path)


def test_the_command_says_how_to_get_pyflink(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["bench", "joins", "--only", "flink", "--quick"])
    assert result.exit_code == 1
    assert "this interpreter has no PyFlink" in " ".join(result.output.split())


def test_a_join_has_one_pair_of_event_time_bounds() -> None:
    *_, last = interval_sql(is_timed=True).split(" JOIN ")
    assert last.count("INTERVAL") == 2
    assert last.count("ABS") == 2
    *_, last = interval_sql(is_timed=False).split(" JOIN ")
    assert "INTERVAL" not in last
    assert last.count("ABS") == 3


def test_only_timed_streams_have_a_watermark() -> None:
    assert "WATERMARK" in flink_job.source_ddl("s0", "path", is_timed=True)
    assert "WATERMARK" not in flink_job.source_ddl("s0", "path", is_timed=False)


def test_another_plan_is_refused() -> None:
    answer = Answer("9", [1.0], ["MultiJoin"])
    joins_flink.check_plan("multi", dataclasses.replace(REQUEST, is_timed=False), answer)
    with pytest.raises(EddylineError, match="as MultiJoin instead of IntervalJoin"):
        joins_flink.check_plan("interval", REQUEST, answer)


@pytest.mark.parametrize(
    ("only", "flink", "is_asked"),
    [(None, None, False), ("flink", None, True), (None, pathlib.Path("python"), True)],
)
def test_a_run_of_all_parts_needs_no_pyflink(
    only: str | None, flink: pathlib.Path | None, is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert joins_flink.is_asked_for(Bench("joins", only=only, flink=flink)) is is_asked


def test_flink_is_compared_with_the_runs_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = iter([9.0, 2.0, 2.0, *[4.0] * 4, 9.0, *[4.0] * 6, 9.0, *[4.0] * 4])
    checked = []

    def run_own(*_: object) -> Outcome:
        return Outcome(1.0, next(totals), 10, results=1_000_000, checksum=7, written_bytes=1)

    def run_other(python: str, request: Request, folder: pathlib.Path) -> Answer:
        assert all(pathlib.Path(path).is_dir() for path in request.sources.values())
        return Answer(
            "9", [50.0, 11.0, 12.0, 13.0], ["IntervalJoin" if request.is_timed else "MultiJoin"]
        )

    monkeypatch.setattr(joins_flink, "find_flink", str)
    monkeypatch.setattr(joins_flink, "local_spark", lambda: None)
    monkeypatch.setattr(joins_flink, "run_engine", run_own)
    monkeypatch.setattr(joins_flink, "run_flink", run_other)
    monkeypatch.setattr(joins_flink, "check_results", lambda *given: checked.append(given[1]))
    bench = Bench("joins", quick=True, only="flink")
    joins_flink.against_flink(bench)
    # 12 s, by the median of runs of 2 and 4 s before and after it, then of 4 s.
    assert [result.value for result in bench.results] == [4.0, 3.0, 3.0, 3.0, 3.0]
    assert "engine 3.00 us, 1,000,000 results; control 2.00" in str(bench.results[0].baseline)
    assert "not windowed" in bench.results[4].metric
    assert len(checked) == 3  # two discard their results
