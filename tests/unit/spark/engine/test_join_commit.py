"""The commit of a micro-batch with joins: whatever interrupts it, nothing is lost or twice."""

from __future__ import annotations

import contextlib
import copy
import errno
import os
import pathlib
import random
import re
import shutil
import traceback
from collections.abc import Iterator

import pytest

from eddyline.errors import EngineError
from eddyline.spark.state import compaction
from eddyline.spark.state.state_file import StateFileError
from tests.unit.spark.engine.join_site import JoinSite, Sent, Workload, tidy_often
from tests.unit.spark.killed import FileOperations, KilledError

#: The last of so many micro-batches compacts, lets state expire, merges results, writes a snapshot.
BATCHES = 10
LAST = BATCHES - 1


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    tidy_often(monkeypatch)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload(BATCHES + 1, seed=4)


@pytest.fixture
def operations(monkeypatch: pytest.MonkeyPatch) -> FileOperations:
    return FileOperations(monkeypatch)


def prepare(folder: pathlib.Path, workload: Workload) -> JoinSite:
    """Finish all micro-batches but the last."""
    site = JoinSite(folder, tasks=1)
    for batch in range(LAST):
        site.run(batch, workload.rows[batch])
    site.check(workload, LAST)
    site.end()
    return site


def copies(prepared: JoinSite) -> Iterator[tuple[int, JoinSite]]:
    """Yield numbers from 0 on, each with an engine in a copy of a folder."""
    for number in range(1_000):
        folder = prepared.path.with_name(str(number))
        shutil.copytree(prepared.path, folder)
        site = JoinSite(folder, tasks=1)
        yield number, site
        site.end()
        shutil.rmtree(folder)
    raise AssertionError("it never ends")


def test_the_last_micro_batch_does_everything(
    tmp_path: pathlib.Path, workload: Workload, operations: FileOperations
) -> None:
    """What the next test interrupts; without one of these it would show less."""
    site = prepare(tmp_path / "prepared", workload)
    site.open()
    before = dict(site.folder.log.state.containers)
    operations.done.clear()
    site.run(LAST, workload.rows[LAST])
    written = [what for what in operations.done if "unlink" not in what]
    after = site.folder.log.state.containers
    merged = [name for name, file in after.items() if file["tier"] and name not in before]
    assert merged
    assert len(before.keys() - after.keys()) > compaction.FAN_IN * len(merged)  # some have expired
    records = {"open 9.begun.json.partial", "open 9.json.partial", "open snapshot.json.partial"}
    assert records <= set(written)
    for kind in ("open join-", "__init__ join-", "__init__ rows-"):
        assert any(what.startswith(kind) for what in written), kind
    assert sum(what.endswith(".stem") for what in written) == 1 + len(merged)
    site.end()


def test_a_kill_between_two_file_operations_loses_and_doubles_nothing(
    tmp_path: pathlib.Path, workload: Workload, operations: FileOperations
) -> None:
    """Of the driver or of a worker: what both have written by then is the same."""
    for number, site in copies(prepare(tmp_path / "prepared", workload)):
        operations.fail(number)
        with contextlib.suppress(EngineError):  # which it makes of the end of the process
            site.run(LAST, workload.rows[LAST])
        operations.succeed()
        if operations.failed is None:
            break
        site.end()
        site.open()
        site.run(LAST, workload.rows[LAST])
        site.check(workload, BATCHES)
        if number % 7 == 0:
            site.run(BATCHES, workload.rows[BATCHES])
            site.check(workload, BATCHES + 1)
    assert number > 45


def no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_at_any_moment_is_named_and_the_run_goes_on(
    tmp_path: pathlib.Path, workload: Workload, operations: FileOperations
) -> None:
    """Started again in the same process, and then in another one."""
    named = set()
    for number, site in copies(prepare(tmp_path / "prepared", workload)):
        operations.fail(number, 1, no_space)
        said = ""
        try:
            site.run(LAST, workload.rows[LAST])
        except EngineError as error:
            said = str(error)
        operations.succeed()
        if operations.failed is None:
            break
        if said and not operations.failed.startswith("unlink"):  # which needs no space
            named.add(re.sub(r"\d-\w+\.|-\w+\.", ".", said.split("/")[-1].split(":")[0]))
            assert "No space left on device; free some space or grant access, then start" in said
        for path in re.findall(r"/\S+\.(?:stem|parquet)", said):
            assert not pathlib.Path(path).exists()  # it would take up space
        site.start()
        site.run(LAST, workload.rows[LAST])
        site.check_results(workload, BATCHES)
        if number % 7 == 0:
            site.end()
            site.open()
            site.check(workload, BATCHES)
    assert named == {"9.begun.json", "9.json", "9-.stem", "join.parquet"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_kills_and_full_disks_one_after_the_other(
    tmp_path: pathlib.Path, operations: FileOperations, seed: int
) -> None:
    """What one fault leaves behind meets the next one; also faults while a folder is opened."""
    rng, workload = random.Random(seed), Workload(BATCHES + 2, seed)
    site = JoinSite(tmp_path / "engine")
    batch = failures = 0
    while batch < len(workload.rows):
        if rng.random() < 0.6:
            is_kill = rng.random() < 0.6
            first, count = rng.randrange(80), 10**9 if is_kill else rng.randint(1, 5)
            operations.fail(first, count, KilledError if is_kill else no_space)
        try:
            site.run(batch, workload.rows[batch])
            batch += 1
        except EngineError:
            failures += 1
        while operations.failed is not None:
            operations.succeed()
            site.end()
            operations.fail(rng.randrange(60), count=10**9 if rng.random() < 0.3 else 0)
            with contextlib.suppress(KilledError):
                site.open()
        operations.succeed()
        site.check_results(workload, site.folder.log.state.end)
    site.end()
    site.open()
    site.check(workload, len(workload.rows))
    assert failures


def test_what_a_worker_says_of_a_file_is_what_the_run_says(
    tmp_path: pathlib.Path, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark hands over the traceback of the worker, which begins with the cause."""
    site = JoinSite(tmp_path / "engine")

    def fail(self: Sent, function: object) -> list[bytes]:
        try:
            try:
                raise no_space()
            except OSError as error:
                raise StateFileError("cannot write a.stem: free some space") from error
        except StateFileError:
            raise RuntimeError(f"Job aborted:\n{traceback.format_exc()}\n\tat Foo.bar()") from None

    monkeypatch.setattr(Sent, "run_tasks", fail)
    with pytest.raises(StateFileError, match=r"^cannot write a\.stem: free some space$"):
        site.run(0, workload.rows[0])
    site.end()


def test_a_micro_batch_that_is_stopped_ends_in_few_words(
    tmp_path: pathlib.Path, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark searches an error for signs of its own interrupt; long ones overflow its stack."""
    site = JoinSite(tmp_path / "engine")

    def interrupted(self: Sent, function: object) -> list[bytes]:
        raise RuntimeError("job cancelled" + 1_000 * "\n\tat Foo.bar()")

    monkeypatch.setattr(Sent, "run_tasks", interrupted)
    monkeypatch.setattr(site.runner, "_is_stopping", lambda: True)
    with pytest.raises(RuntimeError) as raised:
        site.run(0, workload.rows[0])
    said = "".join(traceback.format_exception(raised.value))
    assert "Foo.bar" not in said
    words = "py4j.protocol.Py4JJavaError: An error occurred while calling"
    assert words in said
    assert "java.lang.InterruptedException" in said[said.index(words) :]
    assert site.runner.failure is None
    site.end()


def test_a_replayed_micro_batch_changes_nothing(tmp_path: pathlib.Path, workload: Workload) -> None:
    site = JoinSite(tmp_path / "engine")
    for batch, rows in enumerate(workload.rows):
        site.run(batch, rows)
        before = copy.deepcopy(site.folder.log.state)
        for is_reopened in (False, True):
            if is_reopened:
                site.end()
                site.open()
            site.run(batch, rows)
            assert site.folder.log.state == before
            site.check(workload, batch + 1)
    site.end()
