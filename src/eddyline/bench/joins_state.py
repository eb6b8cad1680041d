"""Join state on disk: what is written, how fast a new worker finds it, and what joining needs.

The task that Spark would run is run here by itself, over files.
"""

from __future__ import annotations

import functools
import multiprocessing
import pathlib
import resource
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.arrays import IntArray
from eddyline.bench.harness import Bench, ratio
from eddyline.joins.plan import JoinQuery, KeyRef, Role
from eddyline.spark.common.side_channel import unpack
from eddyline.spark.state.arrived_rows import PARTS, STEM, TASK, TIME, stem_field
from eddyline.spark.state.compaction import choose_merges
from eddyline.spark.state.join_note import JoinNote
from eddyline.spark.state.join_plan import JoinPart, JoinPlan, StemLayout, part_number
from eddyline.spark.state.join_state import JoinState
from eddyline.spark.state.join_worker import join_task
from eddyline.spark.state.needs import Need
from eddyline.spark.state.stored_runs import forget_all

WINDOW_US = 60 * 10**6
BATCHES_IN_WINDOW = 6
_PAYLOAD = pa.schema([("v", pa.int64())])
_STEMS = tuple(
    StemLayout(name, ("k:bigint",), (False,), 1, _PAYLOAD, stream, "ts")
    for stream, name in enumerate(("a", "b"))
)
_ROLES = (Role(0), Role(1))
_QUERY = JoinQuery(
    0, _ROLES, (frozenset(KeyRef(r, 0) for r in _ROLES),), dict.fromkeys(_ROLES, WINDOW_US)
)


class TaskRunner:
    """Runs the join task of two streams on one key, as a driver would.

    Parameters
    ----------
    folder
        For state and results.

    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        (folder / "state").mkdir()
        self.state = JoinState(folder / "state")
        self._batch = 0
        #: Bytes of the rows that arrived, and of the containers that were written.
        self.arrived_bytes = self.written_bytes = 0

    def run(self, keys: dict[int, IntArray], time_us: int, is_kept: bool = True) -> JoinNote:
        """Run a micro-batch of rows with these keys, by stream; forget it if it is not kept."""
        needs = (Need(0, 0, since_us=time_us - WINDOW_US + 1),)
        expired = self.state.expired({stem.name: needs for stem in _STEMS}, {0: (0, 0)})
        files = self.state.by_task(without=expired)
        plan = JoinPlan(
            self._batch,
            1,
            self._folder / "state",
            self._folder / f"results{self._batch}",
            (_QUERY,),
            {0: (0, 0)},
            {part_number(0, stem): JoinPart(0, 0, time_us - WINDOW_US, stem) for stem in range(2)},
            {_ROLES[0]: "a", _ROLES[1]: "b"},
            _STEMS,
            files,
            {task: names for task, own in files.items() if (names := choose_merges(own))},
            dict.fromkeys(range(2), needs),
            bits={stem: (part_number(0, stem),) for stem in range(2)},
        )
        batches = [_to_batch(stem, own, time_us) for stem, own in keys.items()]
        (answer,) = join_task(plan, iter(batches))
        (plain,) = unpack(answer["note"].to_pylist())
        note = JoinNote.from_dict(plain)
        if is_kept:
            self._batch += 1
            self.state.apply(note.added, [*note.removed, *expired])
            self.arrived_bytes += sum(3 * own.nbytes for own in keys.values())  # key, value, time
            self.written_bytes += sum(file.size for file in note.added)
        return note


def _to_batch(stem: int, keys: IntArray, time_us: int) -> pa.RecordBatch:
    """Return rows as they arrive at a task."""
    count = len(keys)
    row = pa.StructArray.from_arrays([pa.array(np.arange(count))], fields=list(_PAYLOAD))
    own = pa.StructArray.from_arrays([pa.array(keys), row], names=["k0", "row"])
    columns = {
        TASK: pa.array(np.zeros(count, np.int32)),
        STEM: pa.array(np.full(count, stem, np.int32)),
        TIME: pa.array(np.full(count, time_us)),
        PARTS: pa.array(np.ones(count, np.int64)),
    }
    for number in range(2):
        columns[stem_field(number)] = own if number == stem else pa.nulls(count, own.type)
    return pa.record_batch(columns)


def written(bench: Bench) -> None:
    """Count the bytes that state and its compaction write, against those of the new rows."""
    batches, rows = (40, 2_000) if bench.quick else (200, 20_000)
    rng = np.random.default_rng(bench.seed)
    with tempfile.TemporaryDirectory() as folder:
        task = TaskRunner(pathlib.Path(folder))
        with bench.progress("state written", batches) as advance:
            for batch in range(batches):
                keys = {stem: rng.integers(0, 10**12, rows // 2) for stem in range(2)}
                task.run(keys, batch * 10**5)
                advance()
        bench.add(
            f"state bytes written / bytes of the new rows, {batches} micro-batches of {rows:,}",
            task.written_bytes / task.arrived_bytes,
            "x",
            f"{len(task.state)} files hold {task.state.rows:,} rows",
        )


def _with_state(folder: str, rows: int, rng: np.random.Generator) -> TaskRunner:
    """Return a task whose first stream has so many rows, all with different keys."""
    task = TaskRunner(pathlib.Path(folder))
    keys = rng.permutation(rows)
    for part in np.array_split(keys, 10):
        task.run({0: part}, 0)
    return task


def growth(bench: Bench) -> None:
    """Time a new worker's first probe, and probes into little and much state."""
    large, small = (100_000, 10_000) if bench.quick else (1_000_000, 10_000)
    rng = np.random.default_rng(bench.seed)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        tasks = {large: _with_state(one, large, rng), small: _with_state(other, small, rng)}
        probes = {1: rng.permutation(small)[:1_000]}

        def cold() -> object:
            forget_all()
            return tasks[large].run(probes, 0, is_kept=False)

        seconds = bench.in_turn("a new worker", {"cold": cold})
        bench.add(
            f"a worker without memory, {large:,} rows of state: until 1,000 rows are joined",
            float(np.median(seconds["cold"])),
            "s",
        )
        variants = {
            str(rows): functools.partial(task.run, probes, 0, False) for rows, task in tasks.items()
        }
        variants["again"] = variants[str(small)]
        seconds = bench.in_turn("growth", variants, rounds=4 * bench.rounds)
        bench.add(
            f"1,000 rows against {large:,} rows of state / against {small:,}, worker time",
            ratio(seconds[str(large)], seconds[str(small)]),
            "x",
            f"control {ratio(seconds['again'], seconds[str(small)]):.2f}",
        )


def memory(bench: Bench) -> None:
    """Compare the memory of a worker whose rows have few and many partners, and over time."""
    stored = 20_000 if bench.quick else 200_000
    peaks = {fan: _in_process(_join_with_partners, stored, fan) for fan in (10, 1_000)}
    bench.add(
        f"memory of a worker, {stored:,} rows of state: each row joins 1,000 / joins 10",
        peaks[1_000] / peaks[10],
        "x",
        f"{peaks[10] / 1e6:.0f} MB",
    )

    rows, windows = (1_000, (5, 10)) if bench.quick else (20_000, (10, 50))
    used = _in_process(_join_windows, rows, windows)
    bench.add(
        f"memory of a worker after {windows[1]} windows / after {windows[0]}",
        used[1] / used[0],
        "x",
        f"{used[0] / 1e6:.0f} MB; {BATCHES_IN_WINDOW} micro-batches of {2 * rows:,} rows a window",
    )


def _in_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns in a process of its own, whose memory is its alone."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _join_windows(rows: int, windows: Sequence[int]) -> list[int]:
    """Return the memory that a process has after some numbers of windows, in bytes."""
    used = []
    with tempfile.TemporaryDirectory() as folder:
        task = TaskRunner(pathlib.Path(folder))
        for batch in range(BATCHES_IN_WINDOW * max(windows)):
            keys = np.arange(rows) + batch * rows // 2
            task.run({0: keys, 1: keys}, batch * WINDOW_US // BATCHES_IN_WINDOW)
            if (batch + 1) in [BATCHES_IN_WINDOW * count for count in windows]:
                resident = pathlib.Path("/proc/self/statm").read_text().split()[1]
                used.append(int(resident) * resource.getpagesize())
    return used


def _join_with_partners(stored: int, fan_out: int) -> int:
    """Return the memory that a process needs at most to join rows with so many partners each."""
    with tempfile.TemporaryDirectory() as folder:
        task = TaskRunner(pathlib.Path(folder))
        task.run({0: np.arange(stored) % (stored // fan_out)}, 0)
        for _ in range(5):
            task.run({1: np.arange(1_000) % (stored // fan_out)}, 0, is_kept=False)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
