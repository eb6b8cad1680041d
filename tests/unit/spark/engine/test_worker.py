"""Plans and workers of an engine: slots from the driver, versions, policies, notes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType

from eddyline.errors import EngineError, InvalidPolicyError
from eddyline.fabric.shared.eddy import SharedEddy
from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators import Batch, ColumnReader
from eddyline.operators.bitmaps import set_bits
from eddyline.operators.domain import Whole
from eddyline.ordering import AGreedy, Policy
from eddyline.ordering.tickets import Tickets
from eddyline.spark.common.operator_plans import RowPlan
from eddyline.spark.common.side_channel import unpack
from eddyline.spark.engine import worker
from eddyline.spark.engine.plans import EddyPlan, QueryHistory, StreamPlan
from eddyline.spark.engine.policies import eddy_policy
from eddyline.spark.engine.stream_history import StreamHistory
from eddyline.spark.engine.task_note import TaskNote
from eddyline.spark.engine.worker import StreamEddy, recall, run_probe, run_task

DOMAIN = Whole()
ROWS = pa.array([5, 15, 25, 35, 45, 55])


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_eddies(monkeypatch)


def forget_eddies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on as another worker process would."""
    cache: worker.WorkerCache[tuple[str, int], StreamEddy] = worker.WorkerCache(4)
    monkeypatch.setattr(worker, "_eddies", cache)


def above(*bounds: int) -> dict[int, SharedQuery]:
    """Queries by number, which is also the bound."""
    return {n: SharedQuery(n, {"a": DOMAIN.compare(">", n)}) for n in bounds}


#: The queries over a stream at the versions 1 to 5 of a plan.
VERSIONS = [
    above(10, 20, 30),
    above(10, 30),
    above(30, 40),
    above(30, 40, 50, 60),
    above(40, 60, 7),
]


def make_plan(history: QueryHistory, version: int, policy: Policy | None = None) -> EddyPlan:
    stream = StreamPlan({"a": DOMAIN}, history, (("a", LongType()),), {"a": 0}, {})
    return EddyPlan("run", version, (stream,), policy or Tickets(), "UTC", True, seed=0)


def plans(changes_min: int) -> Iterator[EddyPlan]:
    """Plans of all versions, by one driver."""
    history = StreamHistory(changes_min)
    for version, queries in enumerate(VERSIONS, start=1):
        yield make_plan(history.advance(version, queries), version)


def bits_of(eddy: SharedEddy) -> list[tuple[int, int]]:
    """Position and slot of every bit that is set when rows have been routed."""
    lineage = eddy.route(Batch([ROWS], [ColumnReader("a")]), np.arange(len(ROWS)))
    rows, slots = set_bits(lineage.interested)
    return list(zip(rows.tolist(), slots.tolist(), strict=True))


def expected_bits(slots: Mapping[int, int]) -> list[tuple[int, int]]:
    values = enumerate(ROWS.to_pylist())
    return [(row, slot) for row, a in values for slot in sorted(slots[n] for n in slots if a > n)]


def test_workers_that_took_different_paths_agree_on_every_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for plan in plans(changes_min=64):
        followed = recall(plan, 0).eddy
    assert plan.streams[0].queries.base_version == 1
    forget_eddies(monkeypatch)
    at_once = recall(plan, 0).eddy  # base at 1, and all changes since
    *_, rebased = plans(changes_min=0)
    assert rebased.streams[0].queries.base_version == 5
    forget_eddies(monkeypatch)
    from_base = recall(rebased, 0).eddy
    assert bits_of(followed) == bits_of(at_once) == bits_of(from_base)
    assert len({id(eddy) for eddy in (followed, at_once, from_base)}) == 3


def test_the_bits_are_those_that_the_driver_handed_out() -> None:
    history = StreamHistory()
    for version, queries in enumerate(VERSIONS, start=1):
        plan = make_plan(history.advance(version, queries), version)
        eddy = recall(plan, 0).eddy
        assert set(history.slots) == set(queries)
        assert bits_of(eddy) == expected_bits(history.slots)
    # In the base the lowest number no longer has the lowest bit: counting in a worker would differ.
    assert list(history.slots.values()) != sorted(history.slots.values())


def test_slots_of_dropped_queries_are_reused_lowest_first_by_the_same_version() -> None:
    history = StreamHistory()
    history.advance(1, above(10, 20, 30, 40))
    changes = history.advance(2, above(20, 40, 50, 60, 70)).changes
    assert [(change.dropped, list(change.added)) for change in changes] == [((0, 2), [0, 2, 4])]
    assert history.slots == {20: 1, 40: 3, 50: 0, 60: 2, 70: 4}


def test_a_query_that_changed_under_its_number_is_dropped_and_added() -> None:
    history = StreamHistory()
    plan = make_plan(history.advance(1, above(10, 20)), 1)
    assert bits_of(recall(plan, 0).eddy) == expected_bits({10: 0, 20: 1})
    changed = {**above(20), 10: SharedQuery(10, {"a": DOMAIN.compare(">", 50)})}
    plan = make_plan(history.advance(2, changed), 2)
    assert bits_of(recall(plan, 0).eddy) == [*expected_bits({20: 1})[:-1], (5, 0), (5, 1)]


def test_queries_travel_as_a_base_once_many_have_changed() -> None:
    history = StreamHistory(changes_min=3)
    history.advance(1, above(*range(8)))
    assert len(history.advance(2, above(*range(11))).changes) == 1
    later = history.advance(3, above(*range(12)))
    assert (later.base_version, later.changes) == (3, ())
    assert [query.number for query in pickle.loads(later.base).values()] == list(range(12))


def test_a_worker_ahead_of_the_plan_starts_again_from_the_base() -> None:
    older, newer = list(plans(changes_min=64))[2:4]
    newest = recall(newer, 0).eddy
    again = recall(older, 0).eddy
    assert again is not newest
    assert len(again) == len(VERSIONS[2])


# --- policies ----------------------------------------------------------------------------------


def test_the_policy_of_the_plan_is_the_one_in_use_in_a_worker() -> None:
    given = AGreedy(profile_probability=0.25)
    eddy = recall(make_plan(StreamHistory().advance(1, VERSIONS[0]), 1, given), 0).eddy
    assert isinstance(eddy.policy, AGreedy)
    assert eddy.policy.profile_probability == 0.25
    assert eddy.policy is not given


def test_the_streams_of_a_plan_learn_apart() -> None:
    plan = make_plan(StreamHistory().advance(1, VERSIONS[0]), 1, AGreedy())
    plan = replace(plan, streams=plan.streams * 2)
    assert recall(plan, 0).eddy.policy is not recall(plan, 1).eddy.policy


@pytest.mark.parametrize("given", ["fastest", "mesh", "content", None, 3, ["tickets"]])
def test_what_is_not_a_policy_for_an_engine_is_refused(given: object) -> None:
    with pytest.raises(InvalidPolicyError, match=r"choose one of auto, as_written, agreedy"):
        eddy_policy(given)


def test_a_policy_class_is_refused() -> None:
    with pytest.raises(InvalidPolicyError, match=r"pass an object: AGreedy\(\)"):
        eddy_policy(AGreedy)


# --- notes -------------------------------------------------------------------------------------


def run_batches(plan: EddyPlan, *batches: list[int]) -> tuple[list[Any], list[TaskNote]]:
    """Return the matches of all rows, and the notes."""
    arrays = [
        (pa.array([0] * len(rows), pa.int32()), pa.array(rows, pa.int64())) for rows in batches
    ]
    results = [row for array in run_task(plan, iter(arrays)) for row in array.to_pylist()]
    packed = [row["note"] for row in results if row and row["note"]]
    return [row and row["queries"] for row in results], [
        TaskNote.from_dict(plain) for plain in unpack(packed)
    ]


def test_a_task_sends_one_note_with_its_last_batch() -> None:
    plan = make_plan(StreamHistory().advance(1, above(10, 20)), 1)
    matches, notes = run_batches(plan, [5, 15], [25, 0])
    assert matches == [None, [10], [10, 20], []]
    (note,) = notes
    assert note.counts == {10: 2, 20: 1}
    assert (note.eddy.rows, note.eddy.visits) == (4, 4)
    work = note.eddy.operators[0]["a"]
    assert (work.visits, work.tickets) == (4, 1.0)
    assert 0 < work.busy_s < note.busy_s
    assert note.busy_s > 0


def test_rows_after_an_empty_batch_are_counted_once() -> None:
    plan = make_plan(StreamHistory().advance(1, above(10)), 1)
    _, notes = run_batches(plan, [5, 15], [], [25])
    assert len(notes) == 2
    merged = TaskNote.merge(notes)
    assert (merged.eddy.rows, merged.counts) == (3, {10: 2})


def test_counts_of_a_task_that_was_given_up_do_not_count() -> None:
    plan = make_plan(StreamHistory().advance(1, above(10)), 1)
    given_up = run_task(plan, iter([(pa.array([0], pa.int32()), pa.array([99]))] * 2))
    next(given_up)
    _, (note,) = run_batches(plan, [15])
    assert (note.counts, note.eddy.rows) == ({10: 1}, 1)


def test_a_new_worker_begins_with_what_others_have_learnt(monkeypatch) -> None:
    """Order, costs and tickets come with the plan; without them it begins with nothing."""
    domains = {"b": DOMAIN, "a": DOMAIN}
    values = {"b": DOMAIN.compare(">", 10), "a": DOMAIN.compare(">", 900)}
    columns = (("a", LongType()), ("b", LongType()))
    history = StreamHistory().advance(1, {1: SharedQuery(1, values)})
    stream = StreamPlan(domains, history, columns, {"a": 0, "b": 1}, {})
    plan = EddyPlan("run", 1, (stream,), Tickets(), "UTC", True, seed=0)
    rng = np.random.default_rng(0)
    batches = [
        (pa.array([0] * 500, pa.int32()), *[pa.array(rng.integers(0, 1000, 500)) for _ in columns])
        for _ in range(40)
    ]
    rows = [row for array in run_task(plan, iter(batches)) for row in array.to_pylist()]
    (plain,) = unpack([row["note"] for row in rows if row and row["note"]])
    work = TaskNote.from_dict(plain).eddy.operators[0]
    learnt = {name: own.learnt for name, own in work.items()}
    assert list(learnt) == ["a", "b"]
    assert learnt["a"].finished > learnt["b"].finished

    forget_eddies(monkeypatch)
    assert list(recall(plan, 0).eddy.learnt()) == ["b", "a"]
    forget_eddies(monkeypatch)
    taught = replace(plan, streams=(replace(stream, learnt=learnt),))
    assert recall(taught, 0).eddy.learnt() == learnt


def test_only_tickets_report_shares() -> None:
    plan = make_plan(StreamHistory().advance(1, above(10)), 1, eddy_policy("as_written"))
    _, (note,) = run_batches(plan, [15])
    assert note.eddy.operators[0]["a"].tickets is None


def test_a_note_of_another_version_is_refused() -> None:
    plain = TaskNote({1: 2}).to_dict()
    assert TaskNote.from_dict(plain) == TaskNote({1: 2})
    with pytest.raises(EngineError, match="note of version 2, the driver reads version 3"):
        TaskNote.from_dict({**plain, "version": 2})


@pytest.mark.parametrize("largest", [0, 7, 2**31, 2**32 - 1, 2**32, 2**50])
def test_counts_come_back_as_they_were_sent(largest: int) -> None:
    counts = {5: 1, 2**31 - 1: largest, 0: 3}
    plain = json.loads(json.dumps(TaskNote(counts).to_dict()))
    assert TaskNote.from_dict(plain).counts == counts


def test_counts_of_many_queries_make_no_object_for_each_in_a_note() -> None:
    """Texts and tuples of 10,000 counts, and collecting them, took longer than the rows did."""
    plain = TaskNote({number: number for number in range(10_000)}).to_dict()
    assert [type(part) for part in plain["counts"]] == [str, str]
    assert sum(map(len, plain["counts"])) < 11 * 10_000


# --- looking for faults ------------------------------------------------------------------------


def test_a_probe_calls_the_functions_it_is_asked_for_on_all_rows_of_their_stream() -> None:
    called: dict[str, list[int]] = {"first": [], "second": [], "other": []}

    def recording(name: str) -> RowPlan:
        def function(value: int) -> bool:
            called[name].append(value)
            raise ValueError("not what a probe looks for")

        return RowPlan(name, (0,), function)

    plan = make_plan(StreamHistory().advance(1, above(10)), 1)
    first = replace(plan.streams[0], operators={"f": recording("first"), "g": recording("other")})
    second = replace(plan.streams[0], operators={"f": recording("second")})
    plan = replace(plan, streams=(first, second))
    source, values = pa.array([0, 1, 0], pa.int32()), pa.array([5, 15, 25])
    answers = list(run_probe(plan, [(0, "f"), (1, "f")], iter([(source, values, values)])))
    assert [len(answer) for answer in answers] == [3]
    assert called == {"first": [5, 25], "second": [15], "other": []}
