"""The command line, as a user types it."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from eddyline import __version__
from eddyline.bench.harness import Bench
from eddyline.cli import doctor
from eddyline.cli.main import app

runner = CliRunner()


def test_version() -> None:
    assert runner.invoke(app, ["--version"]).output.strip() == __version__


def test_doctor_is_content_with_the_machine_of_the_tests(monkeypatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "Everything is in place" in result.output
    assert "jdk.incubator.vector" in result.output


def test_doctor_says_how_to_get_java(monkeypatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere/java")
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 1
    flat = " ".join(result.output.split())
    assert "nothing at /nowhere/java/bin/java, where JAVA_HOME points" in flat
    assert "sudo apt-get install openjdk-17-jre-headless" in flat


def test_doctor_finds_an_old_java_and_a_missing_module(monkeypatch, tmp_path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15'\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    checks = {check.what: check for check in doctor.examine()}
    assert not checks["Java"].ok
    assert checks["Java"].found == "11.0.2"
    assert not checks["Java module jdk.incubator.vector"].ok


def test_doctor_finds_another_python_for_the_workers(monkeypatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/env")
    check = next(c for c in doctor.examine() if c.what == "PYSPARK_PYTHON")
    assert not check.ok
    assert check.fix == f"export PYSPARK_PYTHON={sys.executable}"
    monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python")
    check = next(c for c in doctor.examine() if c.what == "PYSPARK_PYTHON")
    assert "does not exist" in check.found


def test_doctor_finds_a_package_that_is_too_new_or_missing() -> None:
    assert not doctor._package("pandas", (2, 2), (2, 2), "pin it").ok
    missing = doctor._package("no-such-package", (1,), None, "install it")
    assert (missing.ok, missing.found, missing.fix) == (False, "not installed", "install it")


def test_unknown_benchmark() -> None:
    result = runner.invoke(app, ["bench", "speed"])
    assert result.exit_code == 2
    assert "agreedy" in result.output


def test_bench_agreedy_writes_its_numbers(tmp_path) -> None:
    path = tmp_path / "new" / "agreedy.json"
    for part in ("filters", "adaptivity", "overhead"):
        command = ["bench", "agreedy", "--quick", "--only", part, "--json", str(path)]
        result = runner.invoke(app, command)
        assert result.exit_code == 0, result.output
    document = json.loads(path.read_text())
    assert document["bench"] == "agreedy"
    assert document["environment"]["versions"]["numpy"]
    by_metric = {result["metric"]: result for result in document["results"]}
    assert all(
        set(r) >= {"metric", "value", "unit", "baseline", "paper"} for r in by_metric.values()
    )
    greedy = by_metric["fig 9, 12: n=8: evaluations, A-Greedy / optimum"]["value"]
    independent = by_metric["fig 9, 12: n=8: evaluations, Independent / optimum"]["value"]
    assert greedy <= 1.05 < independent
    assert by_metric["table 2: n=8, p=0.05: tuple processing"]["paper"] == 84.77
    own = "figs 16-18: rows until the new best order is in use, A-Greedy, Eddyline's defaults"
    assert by_metric[own]["value"] <= 20_000


def test_bench_names_the_parts_there_are() -> None:
    result = runner.invoke(app, ["bench", "where", "--only", "two"])
    assert result.exit_code == 1
    assert "no part 'two'; its parts are stationary" in " ".join(result.output.split())


def test_a_part_of_a_benchmark_leaves_the_numbers_of_others_in_the_file(tmp_path) -> None:
    def numbers(part: str) -> dict[str, int]:
        bench = Bench("own", only=part, json=tmp_path / "own.json")
        bench.run_parts({name: lambda: bench.add("rows", 1, "rows") for name in ("a", "b")})
        results = json.loads((tmp_path / "own.json").read_text())["results"]
        return collections.Counter(result["part"] for result in results)

    assert [numbers("a"), numbers("b"), numbers("a")] == [{"a": 1}, *[{"a": 1, "b": 1}] * 2]


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_bench_where_names_missing_data(tmp_path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    from eddyline.errors import EddylineError
    from eddyline.testing.texts import read_newsgroups

    with pytest.raises(EddylineError, match=r"no train\.jsonl\.gz in .*--data takes the folder"):
        read_newsgroups(tmp_path / folder)


def test_demo_runs_and_follows_the_drift(tmp_path) -> None:
    page = tmp_path / "report.html"
    command = pathlib.Path(sys.executable).parent / "eddyline"
    run = subprocess.run(
        [str(command), "demo", "--rows", "24000", "--html", str(page)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "COLUMNS": "140"},
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "times fewer evaluations" in run.stdout
    assert "changed to mark3" in run.stdout
    assert "order in use: mark2" in run.stdout
    assert "1,001 queries" in run.stdout
    assert "- query hot" in run.stdout
    assert "<table>" in page.read_text()


EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "alerts"


def start_example(folder: pathlib.Path, *options: str) -> subprocess.Popen[str]:
    command = pathlib.Path(sys.executable).parent / "eddyline"
    return subprocess.Popen(
        [str(command), "run", str(folder / "alerts.toml"), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "140",
        },
    )


def test_run_runs_the_example_stops_when_told_to_and_goes_on(tmp_path) -> None:
    folder = tmp_path / "alerts"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("engine", "left_on"))
    first = start_example(folder)
    assert first.stdout is not None
    shown = ""
    for line in first.stdout:
        shown += line
        if line.startswith("micro-batch 2"):
            first.send_signal(signal.SIGINT)
            break
    shown += first.communicate(timeout=120)[0]
    assert first.returncode == 0, shown
    assert "micro-batch 2: 12 rows" in shown
    assert "bright: {'room':" in shown
    assert "stopping; an interrupted micro-batch is run again" in shown
    assert "5 queries" in shown
    assert list((folder / "left_on").glob("*.csv"))
    # Edited and started again: what the file says now, from where it was.
    described = (folder / "alerts.toml").read_text()
    described = described.replace("lux > 500", "lux > 100").split("[queries.readings]")[0]
    (folder / "alerts.toml").write_text(described)
    again = start_example(folder, "--once")
    shown, _ = again.communicate(timeout=120)
    assert again.returncode == 0, shown
    assert "query bright replaced" in shown
    assert "query readings dropped" in shown
    assert "0 micro-batches" in shown


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("path = ", "is not TOML"),
        ("path = 'e'", "describe a stream"),
        ("[streams.s]\nformat = 'json'", "path = "),
        ("path = 'e'\nstream = 1", "unknown key 'stream'"),
        ("path = 'e'\n[streams.s]\noptions = {}", "say its format"),
        ("path = 'e'\n[streams.s]\nformat = 'json'\n[queries.q]\nsink = 'count'", "write sql"),
    ],
)
def test_run_says_what_is_wrong_with_the_file(tmp_path, text: str, says: str) -> None:
    path = tmp_path / "engine.toml"
    path.write_text(text)
    result = runner.invoke(app, ["run", str(path)])
    assert result.exit_code == 1
    assert says in " ".join(result.output.split())


def test_run_names_a_missing_file(tmp_path) -> None:
    result = runner.invoke(app, ["run", str(tmp_path / "missing.toml")])
    assert result.exit_code == 1
    assert "No such file" in " ".join(result.output.split())
