"""Which Python of the workers is refused, and where nothing is checked."""

from __future__ import annotations

import pathlib
import sys
from types import SimpleNamespace

import pytest

import eddyline as el
from eddyline.spark.common.worker_python import check_worker_python, fault_of


@pytest.fixture
def python(tmp_path):
    def make(script: str) -> str:
        path = tmp_path / "python3"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        fault_of.cache_clear()
        return str(path)

    return make


def session(python: str, master: str = "local[2]", includes=(), **settings) -> SimpleNamespace:
    context = SimpleNamespace(
        master=master,
        pythonExec=python,
        environment={},
        _python_includes=list(includes),
        getConf=lambda: settings,
    )
    return SimpleNamespace(_sc=context)


def test_a_python_without_eddyline(python) -> None:
    version = ".".join(map(str, sys.version_info[:2]))
    lacking = python(f"echo {version}; echo No module named pyarrow >&2; exit 1")
    with pytest.raises(el.EddylineError) as caught:
        check_worker_python(session(lacking))
    message = str(caught.value)
    assert "cannot import Eddyline (No module named pyarrow)" in message
    assert f"export PYSPARK_PYTHON={sys.executable}" in message


def test_a_python_of_another_version(python) -> None:
    assert "is Python 2.7 instead of" in fault_of(python("echo 2.7; exit 1"))


def test_a_python_that_can_import_it(python) -> None:
    check_worker_python(session(python(f'exec "{sys.executable}" "$@"')))


def test_a_python_that_does_not_exist(tmp_path: pathlib.Path) -> None:
    with pytest.raises(el.EddylineError, match="does not exist"):
        check_worker_python(session(str(tmp_path / "none")))


def test_what_is_not_visible_from_here_is_not_checked(python) -> None:
    missing = python("exit 1")
    check_worker_python(SimpleNamespace())  # Connect
    check_worker_python(session(missing, master="spark://host:7077"))
    check_worker_python(session(missing, includes=["eddyline.zip"]))
    check_worker_python(session(missing, **{"spark.archives": "environment.tar.gz"}))
