"""Joins on a cluster that loses a machine."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyspark
import pytest

from tests.spark.join_script import SQL, answer, write_sources

ROOT = pathlib.Path(__file__).parents[2]
FILES = 12


def start(command: list[str], folder: pathlib.Path) -> subprocess.Popen[str]:
    """Start a process in a group of its own, which can import what this process can."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=(folder / "stderr").open("a"),
        text=True,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process with everything that it started, as if its machine was lost."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Cluster:
    """A master and two workers of one core each.

    Parameters
    ----------
    folder
        Where they work.

    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[str]] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        place = ["--host", "127.0.0.1", "--webui-port", "0"]
        self._start("master.Master", *place, "--port", str(port))
        size = ["--cores", "1", "--memory", "768m", "--work-dir", str(folder / "work")]
        self.workers = [self._start("worker.Worker", *place, *size, self.url) for _ in range(2)]

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[str]:
        program = pathlib.Path(pyspark.__file__).parent / "bin" / "spark-class"
        command = [str(program), f"org.apache.spark.deploy.{kind}", *arguments]
        self._processes.append(start(command, self._folder))
        return self._processes[-1]

    def stop(self) -> None:
        for process in self._processes:
            kill(process)


@pytest.fixture
def cluster(tmp_path: pathlib.Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.stop()


@pytest.mark.slow
def test_a_lost_machine_loses_and_doubles_nothing(
    spark: Any, tmp_path: pathlib.Path, cluster: Cluster
) -> None:
    source = tmp_path / "source"
    write_sources(source, FILES, rows=12)
    arguments = [cluster.url, str(source), str(tmp_path / "engine")]
    driver = start([sys.executable, "-m", "tests.spark.join_script", *arguments], tmp_path)
    finished, answers = 0, {}
    try:
        assert driver.stdout is not None
        for line in driver.stdout:
            what, said = line.split(maxsplit=1)
            if what == "finished":
                finished += 1
                if finished == 3:
                    assert len(list((tmp_path / "work").glob("app-*/*"))) >= 2  # one on each
                    kill(cluster.workers[0])
            elif what == "answers":
                answers = json.loads(said)
        assert driver.wait() == 0, (tmp_path / "stderr").read_text()[-3_000:]
    finally:
        kill(driver)
    assert finished == FILES
    for name in SQL:
        expected = answer(spark, source, name)
        assert expected
        assert [tuple(row) for row in answers[name]] == expected
