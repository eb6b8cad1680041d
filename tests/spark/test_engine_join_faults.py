"""Joins whose workers are killed, or meet a full disk: results equal batch SQL all the same."""

from __future__ import annotations

import errno
import os
import pathlib
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from eddyline import EngineError
from eddyline.spark.engine import join_runner
from eddyline.spark.state.join_plan import JoinPlan
from eddyline.spark.state.join_worker import join_task
from tests.spark.join_script import SQL, answer, open_engine, tidy_often, write_sources
from tests.unit.spark.killed import FileOperations

KILL, FULL = "kill", "full"


class Fault(NamedTuple):
    """What happens to the workers of a micro-batch.

    Parameters
    ----------
    how
        `KILL` the first worker that gets so far, or tell all of them that the disk is `FULL`.
    number, kind
        At which file operation, as in `FileOperations.fail`; one that a task does not reach stands
        for the moment after its note.

    """

    how: str
    number: int
    kind: str


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    tidy_often(monkeypatch)


def fail_in_workers(
    monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path, faults: Mapping[int, Fault]
) -> None:
    """Let workers fail in some micro-batches.

    Parameters
    ----------
    monkeypatch
        Undoes it.
    folder
        What a worker was about to do stands in the file `failed-{batch}`. Workers are killed as
        long as there is none, and a disk is full as long as there is a file `full-{batch}`.
    faults
        By micro-batch.

    """

    def task_function(plan: JoinPlan) -> Callable[[Iterator[Any]], Iterator[Any]]:
        fault = faults.get(plan.batch)

        def faulty(batches: Iterator[Any]) -> Iterator[Any]:
            is_full = (folder / f"full-{plan.batch}").exists()
            has_failed = (folder / f"failed-{plan.batch}").exists()
            if fault is None or (not is_full if fault.how == FULL else has_failed):
                return join_task(plan, batches)
            return run_faulty(plan, batches, fault, folder)

        return faulty

    folder.mkdir()
    for batch in faults:
        if faults[batch].how == FULL:
            (folder / f"full-{batch}").touch()
    monkeypatch.setattr(join_runner, "_task_function", task_function)


def run_faulty(
    plan: JoinPlan, batches: Iterator[Any], fault: Fault, folder: pathlib.Path
) -> Iterator[Any]:
    """Join a task and fail at a file operation, or after the note was sent."""

    def fail() -> BaseException:
        operations.succeed()
        (folder / f"failed-{plan.batch}").write_text(operations.done[-1])
        if fault.how == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        operations = FileOperations(patch)
        operations.fail(fault.number, error=fail, kind=fault.kind)
        yield from join_task(plan, batches)
        operations.done.append("note")
        fail()


class Site:
    """An engine over written files, and what batch SQL gives over them."""

    def __init__(self, spark: Any, folder: pathlib.Path, files: int) -> None:
        self._spark, self._folder = spark, folder
        write_sources(folder / "source", files, rows=5)
        self.path = folder / "engine"

    def open(self) -> Any:
        return open_engine(self._spark, self._folder / "source", self.path)

    def check(self, engine: Any) -> None:
        for name in SQL:
            expected = answer(self._spark, self._folder / "source", name)
            assert expected
            assert sorted(map(tuple, engine.results(name).collect())) == expected
            assert engine.queries()[name].matched == len(expected)
        stored = {path.name for path in (self.path / "state").glob("*.stem")}
        assert stored >= set(engine._folder.log.state.containers)


@pytest.mark.slow
def test_a_killed_worker_and_a_full_disk_lose_and_double_nothing(
    spark: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, failed = Site(spark, tmp_path, files=3), tmp_path / "failed"
    faults = {1: Fault(KILL, 0, ".stem"), 2: Fault(FULL, 0, ".stem")}
    fail_in_workers(monkeypatch, failed, faults)
    with site.open() as engine:
        run = engine.start("available now")
        says = r"^cannot write join state to .*/2-\d-\w+\.stem: No space left .* start the engine"
        with pytest.raises(EngineError, match=says):
            run.process_all_available()
        assert engine._folder.log.state.end == 2
        assert (failed / "failed-1").exists()
        (failed / "full-2").unlink()
        engine.start("available now").process_all_available()
        site.check(engine)


#: Every operation of a worker: the result file, the container, the merged container, the note.
MOMENTS = [
    (0, "mkdir"),
    (0, "__init__"),
    (0, "write_batch"),
    (1, "write_batch"),
    (0, "close"),
    (0, "open join-"),
    (0, "fchmod"),
    (0, "fsync"),
    (0, ".stem"),
    (1, "fsync"),
    (1, ".stem"),
    (2, "fsync"),
    (10**6, "open"),
]


@pytest.mark.slow
def test_workers_killed_at_every_file_operation_lose_and_double_nothing(
    spark: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, failed = Site(spark, tmp_path, files=3 + len(MOMENTS)), tmp_path / "failed"
    faults = {3 + n: Fault(KILL, *moment) for n, moment in enumerate(MOMENTS)}
    fail_in_workers(monkeypatch, failed, faults)
    with site.open() as engine:
        engine.start("available now").process_all_available()
        killed = {int(path.name.split("-")[1]): path.read_text() for path in failed.iterdir()}
        assert killed.keys() == faults.keys()
        for batch, fault in faults.items():
            assert fault.kind in killed[batch] or killed[batch] == "note"
        assert sum(what == "note" for what in killed.values()) < len(MOMENTS) / 2
        site.check(engine)


@pytest.mark.slow
def test_a_result_file_that_the_disk_has_no_space_for_is_named(
    spark: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, failed = Site(spark, tmp_path, files=2), tmp_path / "failed"
    fail_in_workers(monkeypatch, failed, {1: Fault(FULL, 0, "write_batch")})
    with site.open() as engine:
        run = engine.start("available now")
        says = r"^cannot write results to .*/join-\w+\.parquet: No space left .* start the engine"
        with pytest.raises(EngineError, match=says):
            run.process_all_available()
        assert not list(site.path.glob("results/batch=1/join-*"))
        (failed / "full-1").unlink()
        engine.start("available now").process_all_available()
        site.check(engine)
