"""Indexes over join state: configurations are stored with rows, and demands travel to workers."""

from __future__ import annotations

import json
import pathlib
from dataclasses import replace

import pytest

from eddyline.index.configuration import Configuration
from eddyline.index.demand import Demand
from eddyline.index.tuning_options import TuningOptions
from eddyline.spark.state import compaction, probe_memory, stored_runs
from eddyline.spark.state.index_note import IndexNote, NamedDemand
from eddyline.spark.state.join_note import JoinNote
from eddyline.spark.state.probe_memory import recall_tuner
from tests.unit.joins.oracle import Row
from tests.unit.spark.state.test_join_worker import Engine, renamed

WANTED = {0: frozenset([5])}


def rows(batch: int, count: int = 64) -> dict[int, list[Row]]:
    return {
        stem: [Row(1000 * batch + n, batch, (n,), batch, WANTED) for n in range(count)]
        for stem in range(2)
    }


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be another worker, which has nothing in memory."""
    monkeypatch.setattr(stored_runs, "_sections", stored_runs.WorkerCache(100))
    monkeypatch.setattr(probe_memory, "_tuners", probe_memory.WorkerCache(100))


def test_rows_are_stored_with_their_configuration(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(tmp_path)
    engine.run(rows(0), {5: 100}, {5: 0})
    (file,) = engine.notes[0].added
    # Hashes of the test take two values, so more bits would not be filled.
    assert file.sections["a"].configuration == Configuration((1,))
    assert type(file).from_dict(json.loads(json.dumps(file.to_dict()))) == file
    forget(monkeypatch)
    engine.run(rows(1), {5: 100}, {5: 0})
    assert engine.notes[1].indexes["a"].configurations == {"k:string:1": 2}


def test_compaction_writes_the_current_configuration(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "FAN_IN", 2)
    engine = Engine(tmp_path)
    engine.run(rows(0), {5: 100}, {5: 0})
    engine.run(rows(1), {5: 100}, {5: 0})
    tuner = recall_tuner(plan_of(engine))
    monkeypatch.setattr(tuner, "configuration", lambda state, columns: Configuration((7,)))
    engine.run(rows(2), {5: 100}, {5: 0})
    assert engine.notes[2].removed
    merged = [file for file in engine.notes[2].added if file.tier]
    assert merged[0].sections["a"].configuration == Configuration((7,))


def plan_of(engine: Engine):
    """Return a plan with the SteMs of the engine's own."""
    plan = renamed(engine)
    stems = tuple(replace(s, name=s.name.removeprefix("other ")) for s in plan.stems)
    return replace(plan, stems=stems)


def test_a_new_worker_begins_with_the_demands_of_the_plan(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(monkeypatch)
    engine = Engine(tmp_path)
    plan = plan_of(engine)
    demand = NamedDemand({("k:string",): 0.75}, 40.0)
    tuner = recall_tuner(replace(plan, demands={"a": demand}))
    assert tuner.expected("a") == {(0,): 30.0}
    assert tuner.expected("b") == {}
    assert recall_tuner(plan) is tuner  # it goes on with what it knows
    assert recall_tuner(renamed(engine)) is not tuner


def test_other_keys_have_another_tuner(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patterns are positions of keys."""
    forget(monkeypatch)
    plan = plan_of(Engine(tmp_path))
    more = replace(plan, stems=tuple(replace(s, keys=("j:int", *s.keys)) for s in plan.stems))
    assert recall_tuner(plan) is not recall_tuner(more)


def test_demands_follow_the_names_of_columns() -> None:
    demand = NamedDemand.of(Demand({(0,): 0.5, (0, 1): 0.3, (): 0.2}, 7.0), ["k", "j"])
    assert NamedDemand.from_dict(json.loads(json.dumps(demand.to_dict()))) == demand
    assert demand.positions(["i", "j", "k"]) == Demand({(2,): 0.5, (1, 2): 0.3, (): 0.2}, 7.0)
    assert demand.positions(["k"]) == Demand({(0,): 0.5, (): 0.2}, 7.0)


def test_notes_of_tasks_are_added_up() -> None:
    one = IndexNote(NamedDemand({("k",): 1.0}, 5.0), {("k", "scan"): 2}, {"k:3": 1}, 10, 4, 0.5)
    other = replace(one, demand=NamedDemand({("j",): 1.0}, 9.0), searches={("j", "scan"): 1})
    merged = JoinNote.merge([JoinNote(indexes={"a": one}), JoinNote(indexes={"a": other})])
    total = merged.indexes["a"]
    assert total.demand == other.demand
    assert total.searches == {("k", "scan"): 2, ("j", "scan"): 1}
    assert (total.configurations, total.bytes, total.rows) == ({"k:3": 2}, 20, 8)
    assert total.build_s == 1.0
    assert IndexNote.from_dict(json.loads(json.dumps(total.to_dict()))) == total


def test_the_plan_says_how_indexes_are_tuned(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(monkeypatch)
    plan = plan_of(Engine(tmp_path))
    options = TuningOptions(only="bit address")
    assert recall_tuner(replace(plan, tuning=options)).options is options


def test_indexes_of_rows_with_other_columns_are_kept(tmp_path: pathlib.Path) -> None:
    """A query that brings a key keeps it from being NULL in old rows at every micro-batch."""
    engine = Engine(tmp_path)
    engine.run(rows(0), {5: 100}, {5: 0})
    plan = plan_of(engine)
    more = replace(plan, stems=tuple(replace(s, keys=("j:int", *s.keys)) for s in plan.stems))
    files = engine.state.by_task(without=())
    first, second = (
        stored_runs.recall(replace(more, files=files), 0, 1)[files[0][0].name][0] for _ in range(2)
    )
    assert first.partition() is second.partition()
    assert len(first.keys) == 2
    assert not first.keys[0].is_valid.any()


def test_a_worker_forgets_rows_that_expired_or_were_merged(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(monkeypatch)
    monkeypatch.setattr(compaction, "FAN_IN", 3)
    engine = Engine(tmp_path)
    known = []
    for batch in range(30):
        engine.run(rows(10 * batch), {5: 50}, {5: 0}, watermark_us=10 * batch)
        known.append(len(list(stored_runs._sections)))
    assert len(engine.state) < 10
    # Those of the micro-batch itself, and those that it replaced, go with the next one.
    assert max(known[10:]) <= 2 * (len(engine.state) + 3)
    assert known[-1] <= max(known[5:15])
