"""SteMs against a nested loop: every result once, whatever the graph, the cuts and the orders."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.index.assessment import SRIA
from eddyline.index.configuration import Configuration
from eddyline.index.migration import MigrateAll, MigrateNothing, MigratePartial, Migration
from eddyline.index.schedules import Continuous
from eddyline.index.tuner import Tuner
from eddyline.index.tuning_options import TuningOptions
from eddyline.joins import searches
from eddyline.joins.arrivals import ArrivalClock
from eddyline.joins.combinations import Combinations
from eddyline.joins.join import Join
from eddyline.joins.keys import key_column
from eddyline.joins.plan import TIME_COLUMN, Bound, JoinQuery, KeyRef, Role
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.journal.events import IndexAssessed
from eddyline.operators.bitmaps import bitmap_of, set_bits, words_for
from tests.unit.joins import oracle
from tests.unit.joins.oracle import Row

KEYS = 2
NUMBER = pa.schema([("number", pa.int64())])


def to_run(rows: Sequence[Row], words: int) -> Run:
    keys = [
        key_column(pa.array([row.keys[column] for row in rows], pa.int64()))
        for column in range(KEYS)
    ]
    lineage = {
        occurrence: np.stack([bitmap_of(row.wanted[occurrence], words) for row in rows])
        for occurrence in (0, 1)
    }
    times = np.array([row.time_us for row in rows], dtype=np.int64)
    payload = pa.record_batch({"number": pa.array([row.number for row in rows], pa.int64())})
    compared = [np.array([row.keys[c] for row in rows], dtype=np.float64) for c in range(KEYS)]
    return Run(keys, times, lineage, payload, compared=compared)


def run_batches(
    queries: Sequence[JoinQuery],
    rows: Mapping[int, Sequence[Row]],
    batches: int,
    join: Join | None = None,
) -> dict[int, list[tuple[int, ...]]]:
    """Join micro-batch by micro-batch; return the row numbers of all results by slot."""
    words = words_for(1 + max(query.slot for query in queries))
    join = join or Join(queries)
    found: dict[int, list[tuple[int, ...]]] = {query.slot: [] for query in queries}
    by_slot = {query.slot: query for query in queries}

    def emit(results: Combinations) -> None:
        numbers = {
            role: results.payload(role, NUMBER).field("number").to_pylist()
            for role in results.blocks
        }
        for row, slot in zip(*set_bits(results.bitmaps()), strict=True):
            roles = by_slot[int(slot)].roles
            found[int(slot)].append(tuple(numbers[role][row] for role in roles))

    for batch in range(batches):
        arriving = {
            stream: [row for row in own if row.batch == batch] for stream, own in rows.items()
        }
        first = 0
        for stream, own in sorted(arriving.items()):
            if stream in join.stems:
                earlier = sum(row.batch < batch for row in rows[stream])
                join.stems[stream].clock = ArrivalClock(earlier, first, len(own))
            first += len(own)
        new = {}
        for stream, own in arriving.items():
            if stream in join.stems and own:
                clock = join.stems[stream].clock
                assert clock is not None
                sequence = clock.before + np.arange(clock.count)
                new[stream] = replace(to_run(own, words), sequence=sequence)
        join.run(new, emit)
    return {slot: sorted(results) for slot, results in found.items()}


def random_query(rng: random.Random, slot: int, streams: int) -> JoinQuery:
    count = rng.randint(2, 4)
    roles: list[Role] = []
    while len(roles) < count:
        stream = rng.randrange(streams)
        occurrence = sum(role.stream == stream for role in roles)
        if occurrence < 2:
            roles.append(Role(stream, occurrence))
    groups: list[set[KeyRef]] = []
    for number, role in enumerate(roles[1:], 1):
        if rng.random() < 0.1:  # other comparisons, or nothing at all, link it with the rest
            continue
        for _ in range(rng.choice([1, 1, 2])):
            other = KeyRef(rng.choice(roles[:number]), rng.randrange(KEYS))
            groups.append({KeyRef(role, rng.randrange(KEYS)), other})
    merged: list[set[KeyRef]] = []
    for group in groups:
        touching = [one for one in merged if one & group]
        union = group.union(*touching)
        if len({ref.role for ref in union}) == len(union):  # columns of a role are not equated
            merged = [one for one in merged if not one & group] + [union]
    windows: dict[Role, int | None] = {role: rng.choice([2, 4, 9, None]) for role in roles}
    in_rows = {role: rng.choice([1, 2, 4]) for role in roles if rng.random() < 0.5}
    return JoinQuery(
        slot,
        tuple(sorted(roles)),
        tuple(map(frozenset, merged)),
        windows,
        in_rows if rng.random() < 0.4 else {},
        random_bounds(rng, roles) if rng.random() < 0.4 else (),
    )


def random_bounds(rng: random.Random, roles: Sequence[Role]) -> tuple[Bound, ...]:
    bounds = []
    for _ in range(rng.randint(1, 3)):
        one, other = rng.sample(roles, 2)
        column = rng.choice([TIME_COLUMN, 0, 1])
        bounds.append(Bound(KeyRef(one, column), KeyRef(other, column), rng.choice([-1, 0, 1, 3])))
    return tuple(bounds)


def random_rows(rng: random.Random, streams: int, slots: int, batches: int) -> dict[int, list[Row]]:
    rows: dict[int, list[Row]] = {}
    for stream in range(streams):
        rows[stream] = [
            Row(
                number,
                rng.randrange(batches),
                tuple(rng.choice([0, 1, 2, None]) for _ in range(KEYS)),
                rng.randrange(12),
                {
                    occurrence: frozenset(s for s in range(slots) if rng.random() < 0.8)
                    for occurrence in (0, 1)
                },
            )
            for number in range(rng.randint(0, 7))
        ]
    return rows


@settings(max_examples=150)
@given(seed=st.integers(0, 10**9))
def test_equals_a_nested_loop(seed: int) -> None:
    rng = random.Random(seed)
    streams, slots, batches = rng.randint(2, 4), rng.randint(1, 4), rng.randint(1, 4)
    queries = [random_query(rng, slot, streams) for slot in range(slots)]
    rows = random_rows(rng, streams, slots, batches)
    found = run_batches(queries, rows, batches)
    for query in queries:
        assert found[query.slot] == oracle.results(query, rows)


@settings(max_examples=80)
@given(seed=st.integers(0, 10**9))
def test_queries_that_differ_in_windows_alone_get_what_each_asks_for(seed: int) -> None:
    """They are joined together, also in cycles, up to the largest window of each stream."""
    rng = random.Random(seed)
    streams, slots = rng.randint(2, 3), rng.randint(2, 4)
    first = replace(random_query(rng, 0, streams), bounds=())
    if rng.random() < 0.6:  # all pairs of roles have a key of their own: a cycle if there are three
        pairs = list(itertools.combinations(first.roles, 2))[:3]
        equal = [
            {KeyRef(one, n % 2), KeyRef(other, 1 - n % 2)} for n, (one, other) in enumerate(pairs)
        ]
        first = replace(first, equalities=tuple(map(frozenset, equal)))
    queries = []
    for slot in range(slots):
        windows: dict[Role, int | None] = {
            role: rng.choice([1, 3, 7, None]) for role in first.roles
        }
        in_rows = {role: rng.choice([1, 2, 4]) for role in first.roles if rng.random() < 0.3}
        queries.append(replace(first, slot=slot, windows_us=windows, windows_rows=in_rows))
    rows = random_rows(rng, streams, slots, 3)
    found = run_batches(queries, rows, 3)
    for query in queries:
        assert found[query.slot] == oracle.results(query, rows)


def options(migration: Migration, only: str | None, bits: int | None) -> TuningOptions:
    return TuningOptions(
        assessment=SRIA,
        schedule=lambda: Continuous(window_requests=2),
        migration=migration,
        bits=bits,
        only=only,
    )


TUNINGS = {
    "all partitions migrate": options(MigrateAll(), "bit address", 6),
    "no partition migrates": options(MigrateNothing(), "bit address", 3),
    "as many bits as rows": options(MigratePartial(), "bit address", None),
    "cheapest index": options(MigratePartial(), None, 4),
    "sorted hashes": options(MigrateNothing(), "sorted hash", None),
}


@pytest.mark.parametrize("name", TUNINGS)
@settings(max_examples=40)
@given(seed=st.integers(0, 10**9))
def test_tuning_changes_no_result(name: str, seed: int) -> None:
    rng = random.Random(seed)
    streams, slots, batches = rng.randint(2, 4), rng.randint(1, 3), rng.randint(2, 5)
    queries = [random_query(rng, slot, streams) for slot in range(slots)]
    rows = random_rows(rng, streams, slots, batches)
    join = Join(queries, tuner=Tuner(TUNINGS[name]))
    found = run_batches(queries, rows, batches, join)
    for query in queries:
        assert found[query.slot] == oracle.results(query, rows)


def clique(rows: int, seed: int) -> tuple[JoinQuery, dict[int, Run]]:
    """Return a triangle of streams, each pair joined on columns of its own, and rows."""
    a, b, c = (Role(stream) for stream in range(3))
    pairs = [((a, 0), (b, 0)), ((b, 1), (c, 0)), ((c, 1), (a, 1))]
    equal = tuple(frozenset([KeyRef(*one), KeyRef(*other)]) for one, other in pairs)
    query = JoinQuery(0, (a, b, c), equal, dict.fromkeys((a, b, c)))
    rng, one = np.random.default_rng(seed), np.ones((rows, 1), dtype=np.uint64)
    runs = {}
    for stream in range(3):
        columns = [pa.array(rng.integers(0, 100, rows)) for _ in range(KEYS)]
        payload = pa.record_batch({"number": pa.array(np.arange(rows))})
        runs[stream] = Run([*map(key_column, columns)], np.zeros(rows, np.int64), {0: one}, payload)
    return query, runs


def test_searches_are_assessed_and_the_journal_says_so() -> None:
    query, _ = clique(1, 0)
    tuner = Tuner(TuningOptions(schedule=lambda: Continuous(window_requests=500)))
    join = Join([query], tuner=tuner)
    for batch in range(4):
        join.run(clique(400, batch)[1], lambda found: None)
    events = join.take_events()
    assert {e.state for e in events if isinstance(e, IndexAssessed)} == {
        "stream 0",
        "stream 1",
        "stream 2",
    }
    assert join.take_events() == []
    # Rows of one stream know one column of another, pairs of rows know both.
    searched = {pattern for pattern, _ in join.stems[2].counts.searches}
    assert {(0,), (1,), (0, 1)} == searched
    assert sum(tuner.expected("stream 2").values()) > 0
    new = join.stems[2].old[-1]
    assert new.configuration == tuner.configuration("stream 2", new.columns)


def test_streams_without_join_columns_have_no_index() -> None:
    roles = (Role(0), Role(1))
    bound = Bound(KeyRef(roles[0], 0), KeyRef(roles[1], 0), 0)
    query = JoinQuery(0, roles, (), dict.fromkeys(roles), bounds=(bound,))
    join, found = Join([query]), []
    payload = pa.record_batch({"number": pa.array([0, 1])})
    for stream in (0, 1):
        one, times = np.ones((2, 1), dtype=np.uint64), np.zeros(2, np.int64)
        values = [np.array([1.0, 3.0]) + stream]
        run = Run([], times, {0: one}, payload, compared=values)
        join.run({stream: run}, lambda results: found.append(len(results)))
    assert sum(found) == 3
    assert join.stems[0].partitions() == []


def test_many_ranges_are_visited_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search by the low bits of bucket ids walks many ranges: probes come in parts."""
    found = []
    for ranges_max in (searches.RANGES_MAX, 50):
        monkeypatch.setattr(searches, "RANGES_MAX", ranges_max)
        run = clique(2_000, 1)[1][0]
        run.configuration = Configuration((4, 7))
        stem = SteM([run], tuner=Tuner(TuningOptions(only="bit address")))
        probes = key_column(pa.array([None, *range(60)]))
        pairs = [(*map(tuple, pair),) for pair in stem.probe((1,), [probes], with_new=True)]
        found.append(sorted(p for a, b in pairs for p in zip(a, b, strict=True)))
        counts = stem.count((1,), [key_column(pa.array(range(60)))], with_new=True)
        assert (counts >= np.bincount([probe - 1 for probe, _ in found[-1]], minlength=60)).all()
    assert found[0] == found[1]
    assert len(found[0]) > 500


@pytest.mark.parametrize("many_slots", [70])
def test_more_queries_than_bits_in_a_word(many_slots: int) -> None:
    rng = random.Random(3)
    queries = [random_query(rng, slot, 2) for slot in range(many_slots)]
    rows = random_rows(rng, 2, many_slots, 2)
    found = run_batches(queries, rows, 2)
    assert any(found.values())
    for query in queries:
        assert found[query.slot] == oracle.results(query, rows)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_ordered_bits_change_no_result(seed: int) -> None:
    """Streams that comparisons alone link; a second interval is used for the fewest candidates."""
    rng = random.Random(seed)
    roles = [Role(0), Role(1), Role(2)][: rng.randint(2, 3)]
    queries = [
        JoinQuery(0, tuple(roles), (), dict.fromkeys(roles), bounds=random_bounds(rng, roles))
    ]
    rows = random_rows(rng, len(roles), 1, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searches, "ORDERED_MIN", -1)
        found = run_batches(queries, rows, 3)
    assert found[0] == oracle.results(queries[0], rows)


def test_comparisons_of_two_columns_compare_few_rows() -> None:
    """A square around a row: the first column alone would leave a tenth of all rows."""
    roles, count = (Role(0), Role(1)), 2_000
    bounds = []
    for column in range(2):
        one, other = (KeyRef(role, column) for role in roles)
        bounds += [Bound(one, other, 0.05), Bound(other, one, 0.05)]
    query = JoinQuery(0, roles, (), dict.fromkeys(roles), bounds=tuple(bounds))
    join, results = Join([query]), []
    places = {}
    for stream in (0, 1):
        rng, one = np.random.default_rng(stream), np.ones((count, 1), dtype=np.uint64)
        places[stream] = rng.random((2, count))
        payload = pa.record_batch({"number": pa.array(np.arange(count))})
        times = np.zeros(count, np.int64)
        run = Run([], times, {0: one}, payload, compared=list(places[stream]))
        join.run({stream: run}, lambda found: results.append(len(found)))
    near = [abs(places[0][n][:, None] - places[1][n]) <= 0.05 for n in range(2)]
    assert sum(results) == (near[0] & near[1]).sum()
    candidates = sum(stem.counts.candidates for stem in join.stems.values())
    assert candidates < near[0].sum() / 3


def test_a_comparison_as_the_only_link_compares_few_rows() -> None:
    roles = (Role(0), Role(1))
    refs = [KeyRef(role, 0) for role in roles]
    band = (Bound(refs[0], refs[1], 1), Bound(refs[1], refs[0], 1))
    query = JoinQuery(0, roles, (), dict.fromkeys(roles), bounds=band)
    everywhere = {0: frozenset([0]), 1: frozenset()}
    rows = {
        stream: [Row(n, n % 2, (n, None), n, everywhere) for n in range(300)] for stream in (0, 1)
    }
    join = Join([query])
    found = run_batches([query], rows, 2, join)
    assert found[0] == [(n, m) for n in range(300) for m in range(300) if abs(n - m) <= 1]
    assert sum(stem.counts.candidates for stem in join.stems.values()) == len(found[0])
