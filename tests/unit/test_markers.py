"""`-m "not spark"` selects nothing that would start a JVM, and loses nothing else."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark
ROOT = pathlib.Path(__file__).parents[2]


def is_any_collected(marker: str, *paths: str) -> bool:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", marker, *paths]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), run.stdout
    return run.returncode == pytest.ExitCode.OK


def test_what_uses_the_session_is_marked_by_itself() -> None:
    paths = ["tests/spark/test_bad_input.py", "README.md", "src/eddyline/spark/where/where.py"]
    assert not is_any_collected("not spark", *paths)
    assert is_any_collected("spark", "README.md")


def test_the_word_spark_in_a_longer_name_starts_no_session() -> None:
    assert not is_any_collected("spark", "src/eddyline/report/model.py")
