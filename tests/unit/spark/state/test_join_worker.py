"""Join tasks over files: equal to a nested loop, whatever is compacted, forgotten or renumbered."""

from __future__ import annotations

import json
import pathlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.joins.plan import JoinQuery, KeyRef, Role
from eddyline.joins.probe_routes import ProbeRoutes
from eddyline.spark.state import compaction, join_worker, probe_memory, stored_runs
from eddyline.spark.state.compaction import choose_merges
from eddyline.spark.state.join_note import JoinNote
from eddyline.spark.state.join_plan import JoinPart, JoinPlan, StemLayout, part_number
from eddyline.spark.state.join_state import JoinState
from eddyline.spark.state.join_worker import join_task
from eddyline.spark.state.needs import Need
from eddyline.spark.state.state_file import StateFileError
from tests.unit.joins import oracle
from tests.unit.joins.oracle import Row

PAYLOAD = pa.schema([("number", pa.int64())])
STEMS = tuple(
    StemLayout(name, ("k:string",), (True,), 1, PAYLOAD, stream, "ts")
    for stream, name in enumerate(("a", "b"))
)
ROLES = (Role(0), Role(1))
EQUAL = (frozenset(KeyRef(role, 0) for role in ROLES),)


class Engine:
    """Runs micro-batches of rows through one join task, as a driver would."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        (folder / "state").mkdir(parents=True)
        self.state = JoinState(folder / "state")
        self.batch = 0
        self.notes: list[JoinNote] = []

    def run(
        self,
        rows: dict[int, list[Row]],
        windows_us: dict[int, int],
        slots: dict[int, int],
        watermark_us: int = 0,
    ) -> None:
        """Run a micro-batch for queries given by number, with their windows and slots."""
        queries = tuple(
            JoinQuery(slots[n], ROLES, EQUAL, dict.fromkeys(ROLES, window))
            for n, window in windows_us.items()
        )
        identities = {slots[n]: (n, 0) for n in windows_us}
        needs = tuple(Need(slots[n], 0, watermark_us - w + 1) for n, w in windows_us.items())
        expired = self.state.expired({stem.name: needs for stem in STEMS}, identities)
        files = self.state.by_task(without=expired)
        plan = JoinPlan(
            self.batch,
            1,
            self.folder / "state",
            self.folder / f"results{self.batch}",
            queries,
            identities,
            {
                part_number(n, role): JoinPart(slots[n], 0, watermark_us, role)
                for n in windows_us
                for role in range(2)
            },
            {ROLES[0]: "a", ROLES[1]: "b"},
            STEMS,
            files,
            {task: names for task, own in files.items() if (names := choose_merges(own))},
            dict.fromkeys(range(2), needs),
        )
        for produced in join_task(plan, to_batches(rows, list(windows_us))):
            note = JoinNote.from_dict(json.loads(produced["note"][0].as_py()))
            self.notes.append(note)
            self.state.apply(note.added, [*note.removed, *expired])
        self.batch += 1

    def results(self, number: int) -> list[tuple[int, int]]:
        return sorted(
            (row["a"]["number"], row["b"]["number"])
            for path in self.folder.glob("results*/*.parquet")
            for row in pq.read_table(path).to_pylist()
            if number in row["queries"]
        )


def to_batches(rows: dict[int, list[Row]], numbers: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Return rows as they arrive at a task; hashes collide on purpose."""
    kinds = [
        pa.struct([("k0", pa.string()), ("h0", pa.int64()), ("row", pa.struct(list(PAYLOAD)))])
        for _ in STEMS
    ]
    for stem, own in rows.items():
        structs = [
            {
                "k0": None if row.keys[0] is None else f"key {row.keys[0]}",
                "h0": 0 if row.keys[0] is None else row.keys[0] % 2,
                "row": {"number": row.number},
            }
            for row in own
        ]
        parts = [[part_number(n, stem) for n in numbers if n in row.wanted[0]] for row in own]
        columns = {
            "task": pa.array([0] * len(own), pa.int32()),
            "stem": pa.array([stem] * len(own), pa.int32()),
            "time_us": pa.array([row.time_us for row in own], pa.int64()),
            "parts": pa.array(parts, pa.list_(pa.int32())),
        }
        for number, kind in enumerate(kinds):
            values = structs if number == stem else [None] * len(own)
            columns[f"m{number}"] = pa.array(values, kind)
        yield pa.record_batch(columns)


def make_rows(rng: random.Random, batch: int, numbers: Sequence[int]) -> dict[int, list[Row]]:
    return {
        stem: [
            Row(
                100 * batch + 10 * stem + n,
                batch,
                (rng.choice([0, 1, 2, 3, None]),),
                batch * 5 + rng.randrange(8),
                {0: frozenset(number for number in numbers if rng.random() < 0.8)},
            )
            for n in range(5)
        ]
        for stem in range(2)
    }


def expected(
    rows: list[dict[int, list[Row]]], number: int, window_us: int
) -> list[tuple[int, ...]]:
    query = JoinQuery(number, ROLES, EQUAL, dict.fromkeys(ROLES, window_us))
    merged = {stem: [row for batch in rows for row in batch[stem]] for stem in range(2)}
    return oracle.results(query, merged)


def test_results_do_not_depend_on_compaction_workers_and_slots(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "FAN_IN", 3)
    rng = random.Random(2)
    engine = Engine(tmp_path)
    rows = []
    for batch in range(14):
        rows.append(make_rows(rng, batch, [5, 6]))
        # The slots of the two queries are exchanged half-way, as after others were dropped.
        slots = {5: 0, 6: 1} if batch < 7 else {5: 1, 6: 70}
        if batch % 4 == 0:  # another worker, which has nothing in memory
            monkeypatch.setattr(stored_runs, "_sections", stored_runs.WorkerCache(100))
        engine.run(rows[-1], {5: 9, 6: 30}, slots, watermark_us=batch * 5 - 3)
    assert any(note.removed for note in engine.notes)
    assert len(engine.state) < 8
    for number, window_us in {5: 9, 6: 30}.items():
        answer = expected(rows, number, window_us)
        assert answer
        assert engine.results(number) == answer
        assert sum(note.counts.get(number, 0) for note in engine.notes) == len(answer)


def test_rows_that_are_too_late_neither_join_nor_are_stored(tmp_path: pathlib.Path) -> None:
    engine = Engine(tmp_path)
    everyone = {0: frozenset([5])}
    engine.run({0: [Row(1, 0, (1,), 50, everyone)]}, {5: 100}, {5: 0})
    late, in_time = Row(2, 1, (1,), 39, everyone), Row(3, 1, (1,), 40, everyone)
    engine.run({1: [late, in_time]}, {5: 100}, {5: 0}, watermark_us=40)
    assert engine.results(5) == [(1, 3)]
    assert engine.notes[-1].late == {1: 1}
    assert engine.state.rows == 2


def test_a_query_does_not_see_rows_from_before_it_was_added(tmp_path: pathlib.Path) -> None:
    engine = Engine(tmp_path)
    both = {0: frozenset([5, 6])}
    engine.run({0: [Row(1, 0, (1,), 1, both)]}, {5: 100}, {5: 0})
    engine.run({1: [Row(2, 1, (1,), 2, both)]}, {5: 100, 6: 100}, {5: 0, 6: 1})
    engine.run({0: [Row(3, 2, (1,), 3, both)]}, {6: 100}, {6: 0})
    assert engine.results(5) == [(1, 2)]
    assert engine.results(6) == [(3, 2)]


def test_the_bit_of_a_dropped_query_is_not_the_next_ones(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compaction between the drop and the reuse of the slot must not keep the bit."""
    monkeypatch.setattr(compaction, "FAN_IN", 2)
    engine = Engine(tmp_path)
    both = {0: frozenset([5, 6, 7])}
    for number in (1, 2):
        engine.run({0: [Row(number, 0, (1,), number, both)]}, {5: 100, 6: 100}, {5: 0, 6: 1})
    engine.run({0: [Row(3, 0, (1,), 3, both)]}, {5: 100}, {5: 0})  # merges the first two
    assert engine.notes[-1].removed
    engine.run({1: [Row(4, 0, (1,), 4, both)]}, {5: 100, 7: 100}, {5: 0, 7: 1})
    assert engine.results(5) == [(1, 4), (2, 4), (3, 4)]
    assert engine.results(7) == []


def test_damaged_and_missing_containers_are_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(tmp_path)
    rows = {0: [Row(1, 0, (1,), 1, {0: frozenset([5])})]}
    engine.run(rows, {5: 100}, {5: 0})
    (path,) = (tmp_path / "state").glob("*.stem")
    content = path.read_bytes()
    monkeypatch.setattr(stored_runs, "_sections", stored_runs.WorkerCache(100))
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StateFileError, match="micro-batch 0 wrote, is damaged"):
        engine.run(rows, {5: 100}, {5: 0})
    path.write_bytes(content)
    engine.run(rows, {5: 100}, {5: 0})  # and is in the memory of the worker from now on
    path.unlink()
    with pytest.raises(StateFileError, match="micro-batch 0 wrote, is missing"):
        engine.run(rows, {5: 100}, {5: 0})


def test_a_task_reports_its_orders_of_probes(tmp_path: pathlib.Path) -> None:
    engine = Engine(tmp_path)
    engine.run({0: [Row(1, 0, (1,), 1, {0: frozenset([5])})]}, {5: 100}, {5: 0})
    assert engine.notes[0].orders == {
        "a": ("b by k:string = k:string",),
        "b": ("a by k:string = k:string",),
    }


def test_a_worker_goes_on_with_what_it_learnt_of_a_join(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[dict[Role, ProbeRoutes] | None] = []
    recall = join_worker.recall_routes

    def recalling(plan: JoinPlan) -> dict[Role, ProbeRoutes] | None:
        used.append(recall(plan))
        return used[-1]

    monkeypatch.setattr(join_worker, "recall_routes", recalling)
    rows = {0: [Row(1, 0, (1,), 1, {0: frozenset([5])})]}
    engine, other = Engine(tmp_path / "one"), Engine(tmp_path / "other")
    for each in (engine, engine, other):
        each.run(rows, {5: 100}, {5: 0})
    assert used[0] is None
    assert used[1] is not None
    assert {role: own.names for role, own in used[1].items()} == {
        Role(0): ("b by k:string = k:string",),
        Role(1): ("a by k:string = k:string",),
    }
    assert used[2] is None  # another engine
    assert probe_memory.recall_routes(renamed(engine)) is None


def renamed(engine: Engine) -> JoinPlan:
    """Return a plan of the same engine in which the numbers stand for other streams."""
    stems = tuple(replace(stem, name=f"other {stem.name}") for stem in STEMS)
    folder = engine.folder
    return JoinPlan(9, 1, folder / "state", folder, (), {}, {}, {}, stems, {}, {}, {})


def test_another_layout_of_files_is_refused(tmp_path: pathlib.Path) -> None:
    engine = Engine(tmp_path)
    engine.run({0: [Row(1, 0, (1,), 1, {0: frozenset([5])})]}, {5: 100}, {5: 0})
    plain = engine.notes[0].added[0].to_dict()
    with pytest.raises(StateFileError, match="has layout 99, this release of eddyline reads"):
        type(engine.notes[0].added[0]).from_dict({**plain, "layout": 99})
