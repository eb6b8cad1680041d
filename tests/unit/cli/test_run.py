"""`eddyline run FILE.toml`: the example, bad files, and hostile data."""

from __future__ import annotations

import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

from eddyline.cli.main import app
from eddyline.cli.run import _make_sink, read, run_engine
from eddyline.spark.engine.sinks import is_same_kind, kind_of

runner = CliRunner()
EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "alerts"


@pytest.mark.slow
def test_run_stops_when_told_to_and_continues_with_the_edited_file(tmp_path, spark) -> None:
    folder = tmp_path / "alerts"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("engine", "left_on"))
    file = folder / "alerts.toml"
    first = subprocess.Popen(
        [sys.executable, "-m", "eddyline.cli.main", "run", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONUNBUFFERED": "1"},
    )
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
    # Edited and started again: the queries of the edited file, from where the first run stopped.
    text = file.read_text().replace("lux > 500", "lux > 100").split("[queries.readings]")[0]
    file.write_text(text)
    buffer = io.StringIO()
    run_engine(spark, read(file), file, once=True, console=Console(file=buffer, width=140))
    shown = buffer.getvalue()
    assert "query bright replaced" in shown
    assert "query readings dropped" in shown
    assert "0 micro-batches" in shown
    assert "Ctrl-C" not in shown
    assert "stops after the rows that are there now" in shown


def test_rows_of_a_stream_are_shown_as_they_are() -> None:
    class Row(dict):
        asDict = dict.copy

    buffer = io.StringIO()
    sink = _make_sink("[/bright]", "console", EXAMPLE, Console(file=buffer, width=40))
    sink.function([Row(room="[/docs] [red]x \x1b[2J" + "y" * 60)])
    assert buffer.getvalue() == ("[/bright]: {'room': '[/docs] [red]x \\x1b[2J" + "y" * 60 + "'}\n")


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


def test_a_console_is_listed_as_one_and_known_from_earlier_versions() -> None:
    sink = _make_sink("bright", "console", EXAMPLE, Console())
    assert kind_of(sink, "bright") == "console"
    assert is_same_kind("callback", "console")
    assert not is_same_kind("console", "callback")
