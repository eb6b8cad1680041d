"""The same through Spark Connect, in a process of its own."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.slow  # a server of its own takes a minute


@pytest.fixture(scope="module")
def answer(tmp_path_factory) -> dict:
    path = tmp_path_factory.mktemp("connect") / "answer.json"
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_script", str(path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert path.exists(), run.stdout[-2000:] + run.stderr[-4000:]
    return json.loads(path.read_text())


def test_the_same_rows_as_spark(answer) -> None:
    assert answer["wrong"] == []


def test_the_report_covers_all_workers(answer) -> None:
    report = answer["report"]
    assert report["rows"] == 20_000
    assert report["kept"] == 2_000
    assert report["orders"][0]["order"][0] == "drops_most"
    assert any(change["event"]["kind"] == "OrderChanged" for change in report["changes"])


def test_streaming(answer) -> None:
    assert answer["stream"] == {"kept": 3_000, "seen": 6_000, "keeps_alive": []}


def test_bad_input_is_named_before_the_job_starts(answer) -> None:
    assert "predicate 'p': no column 'nope'" in answer["bad_column"]


def test_classes_of_rows_in_connect(answer) -> None:
    for plane in ("native", "python"):
        assert answer["classes"][plane] == {"same": True, "classes": 2}, plane


def test_the_error_of_a_predicate_is_read_from_the_exception(answer) -> None:
    assert answer["failed_row"] == {
        "predicate": "inverse",
        "error": "ZeroDivisionError: division by zero",
        "row": {"id": "3"},
    }


def test_an_alias_is_the_name_of_a_condition(answer) -> None:
    assert answer["alias"].endswith(": not small [spark]>")
