"""The order in which SteMs are asked: it adapts, and rows that are not dropped do not notice it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from eddyline.joins import drop_probing
from eddyline.joins.combinations import Combinations
from eddyline.joins.drop_probing import SLICE_ROWS_MAX, SLICE_ROWS_MIN
from eddyline.joins.expansion import Expansion, ExpansionNode
from eddyline.joins.join import Join
from eddyline.joins.keys import key_column
from eddyline.joins.plan import JoinQuery, KeyRef, Role
from eddyline.joins.probe_order import DRIFT_ROWS_MIN, PROFILED_ROWS_MIN, ProbeOrder
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.journal.events import ProbeOrderChanged
from eddyline.ordering import AGreedy, AsWritten, Policy, Tickets

ROOT, OTHERS = Role(3), [Role(0), Role(1), Role(2)]
WINDOW_US = 10**9
STAR = JoinQuery(
    0,
    (*OTHERS, ROOT),
    tuple(frozenset([KeyRef(ROOT, n), KeyRef(role, 0)]) for n, role in enumerate(OTHERS)),
    dict.fromkeys([*OTHERS, ROOT], WINDOW_US),
)


def make_run(*keys: np.ndarray) -> Run:
    count = len(keys[0])
    columns = [key_column(pa.array(key)) for key in keys]
    lineage = {0: np.ones((count, 1), dtype=np.uint64)}
    payload = pa.record_batch({"row": np.arange(count)})
    return Run(columns, np.zeros(count, dtype=np.int64), lineage, payload)


def root_rows(selective: Sequence[int], rows: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return key columns of which the n-th finds a partner in 10 % of rows where it is selective.

    Stored keys are 0 to 999; others find none. In the other columns 90 % find one.
    """
    keys = [rng.integers(0, 1000, rows) for _ in OTHERS]
    for column, key in enumerate(keys):
        has_partner = np.where(np.asarray(selective) == column, 0.1, 0.9)
        key[rng.random(rows) >= has_partner] += 10**6
    return keys


def run_star(policy: Policy | None, keys: Sequence[np.ndarray]) -> tuple[int, int, Join]:
    """Return the candidates compared, the results, and the join, of root rows against 3 SteMs."""
    join = Join([STAR], policy=policy, seed=1)
    results = 0

    def emit(given: Combinations) -> None:
        nonlocal results
        results += len(given)

    join.run({n: make_run(np.arange(1000)) for n in range(3)}, emit)
    join.run({3: make_run(*keys)}, emit)
    return sum(stem.counts.candidates for stem in join.stems.values()), results, join


def fixed(order: Sequence[int]) -> Policy:
    class Fixed(AsWritten):
        def start(
            self, filters: int, order_: Sequence[int] | None = None, seed: int | None = None
        ) -> None:
            super().start(filters, order if filters == 3 else None, seed)

    return Fixed()


@pytest.mark.parametrize(
    ("policy", "phase_rows"), [(None, 5_000), (AGreedy(), 40_000)], ids=["tickets", "agreedy"]
)
def test_adapts_when_the_best_order_rotates(policy: Policy | None, phase_rows: int) -> None:
    rng = np.random.default_rng(5)
    rows = 120_000
    selective = np.arange(rows) // phase_rows % 3
    keys = root_rows(selective.tolist(), rows, rng)
    adaptive, results, join = run_star(policy, keys)
    singles = []
    for order in itertools.permutations(range(3)):
        candidates, expected, _ = run_star(fixed(order), keys)
        singles.append(candidates)
        assert results == expected
    assert adaptive <= 0.8 * min(singles)
    assert any(isinstance(event, ProbeOrderChanged) for event in join.take_events())


def test_work_on_rows_that_are_not_dropped_does_not_depend_on_the_order() -> None:
    rng = np.random.default_rng(6)
    kept = [rng.integers(0, 1000, 500) for _ in OTHERS]
    candidates = {run_star(fixed(order), kept)[0] for order in itertools.permutations(range(3))}
    assert len(candidates) == 1
    dropped = root_rows([1] * 500, 500, rng)
    candidates = {run_star(fixed(order), dropped)[0] for order in itertools.permutations(range(3))}
    assert len(candidates) > 1  # the measure can tell orders apart


def test_an_order_that_was_learnt_is_where_the_next_join_begins() -> None:
    rng = np.random.default_rng(7)
    _, _, join = run_star(None, root_rows([2] * 20_000, 20_000, rng))
    learnt = join.orders()[ROOT]
    assert learnt[0][-1].role == OTHERS[2]
    other = Join([STAR])
    assert other.orders()[ROOT] != learnt
    other.begin_with({ROOT: learnt})
    assert other.orders()[ROOT] == learnt


def test_only_a_join_that_learnt_before_begins_with_large_slices() -> None:
    _, _, join = run_star(None, root_rows([2] * 2_000, 2_000, np.random.default_rng(7)))
    first = Join([STAR])
    assert {tree._slice_rows for tree in first._trees} == {SLICE_ROWS_MIN}
    again = Join([STAR], routes=join.routes())
    assert {tree._slice_rows for tree in again._trees} == {SLICE_ROWS_MAX}
    first.begin_with(join.orders())
    assert {tree._slice_rows for tree in first._trees} == {SLICE_ROWS_MAX}


def test_a_single_stem_is_not_profiled() -> None:
    alone = ProbeOrder(AGreedy(profile_probability=1.0), [-1], [1], seed=3)
    assert not len(alone.sample(10_000))
    assert len(ProbeOrder(AGreedy(profile_probability=1.0), [-1, -1], [1, 1]).sample(10_000))


def test_rows_are_profiled_in_lumps_at_the_rate_of_the_policy() -> None:
    order = ProbeOrder(AGreedy(profile_probability=0.02), [-1, -1], [1, 1], seed=3)
    samples = [order.sample(1_000) for _ in range(200)]
    sizes = [len(sample) for sample in samples if len(sample)]
    assert min(sizes) >= PROFILED_ROWS_MIN
    assert sum(sizes) == pytest.approx(0.02 * 200_000, rel=0.05)
    assert all((np.diff(sample) > 0).all() for sample in samples)
    assert max(sample[-1] for sample in samples if len(sample)) < 1_000
    assert not len(ProbeOrder(AsWritten(), [-1, -1], [1, 1]).sample(10**6))


def test_a_profile_says_which_paths_drop_a_row() -> None:
    a, b, c = Role(0), Role(1), Role(2)
    equal = (frozenset([KeyRef(a, 0), KeyRef(b, 0)]), frozenset([KeyRef(b, 1), KeyRef(c, 0)]))
    chain = JoinQuery(0, (a, b, c), equal, dict.fromkeys([a, b, c], WINDOW_US))
    pair = JoinQuery(1, (a, b), equal[:1], dict.fromkeys([a, b], WINDOW_US))
    b_rows = make_run(np.array([1, 2, 2, 4]), np.array([10, 20, 21, 40]))
    b_rows.lineage[0][:] = 3
    c_rows = make_run(np.array([21, 40]))
    a_rows = make_run(np.array([1, 2, 3, 4]))
    a_rows.lineage[0][:, 0] = [3, 3, 3, 2]  # the chain does not want the last row
    join = Join([chain, pair], {1: SteM([b_rows]), 2: SteM([c_rows])})
    join.stems[0].new = a_rows
    tree = next(tree for tree in join._trees if tree.root == a)
    drops = tree._profile(join.stems, np.arange(4))
    by_stream = {node.role: drops[:, number].tolist() for number, node in enumerate(tree.nodes)}
    # No row of b has key 3. Key 1 leads to a row of b that has no partner in c.
    assert by_stream[b] == [False, False, True, False]
    assert by_stream[c] == [True, False, True, False]


def test_slices_grow_though_equal_stems_change_places() -> None:
    rng = np.random.default_rng(8)
    keys = [rng.integers(0, 2000, 100_000) for _ in OTHERS]  # each drops half of the rows
    _, _, join = run_star(None, keys)
    tree = next(tree for tree in join._trees if tree.root == ROOT)
    assert any(isinstance(event, ProbeOrderChanged) for event in join.take_events())
    assert tree._slice_rows == SLICE_ROWS_MAX
    tree = next(tree for tree in run_star(None, turning(rng))[2]._trees if tree.root == ROOT)
    assert tree._slice_rows < SLICE_ROWS_MAX


def turning(rng: np.random.Generator) -> list[np.ndarray]:
    """Return rows among which another SteM drops most from 95,000 on."""
    return root_rows((np.arange(100_000) >= 95_000).astype(int).tolist(), 100_000, rng)


def test_rows_that_cost_another_are_drift_and_tickets_forget_the_old_ones() -> None:
    order = ProbeOrder(Tickets(), parents=[-1, -1], weights=[1, 1])
    many = np.array([10_000, 10_000]), np.array([1_000, 9_000]), np.array([1_000, 9_000])
    order.learn(10_000, *many)
    assert order.current == [0, 1]
    assert not order.detect_drift(4_000, 8_000)
    assert not order.detect_drift(4_000, 8_800)  # 10 % more
    assert not order.detect_drift(DRIFT_ROWS_MIN - 1, 10**6)
    few = np.array([500, 500]), np.array([450, 50]), np.array([450, 50])
    order.learn(500, *few)
    assert order.current == [0, 1]  # old rows outweigh new ones
    assert order.detect_drift(4_000, 12_000)
    order.learn(500, *few)
    assert order.current == [1, 0]
    assert not order.detect_drift(4_000, 12_000)


def test_a_policy_with_profile_tuples_keeps_them_when_rows_cost_another() -> None:
    order = ProbeOrder(AGreedy(tuples_min=4), parents=[-1, -1], weights=[1, 1])
    rows = np.array([1_000, 500]), np.array([500, 500]), np.array([500, 500])
    order.learn(1_000, *rows, drops=np.array([[True, False]] * 20))
    assert not order.detect_drift(4_000, 8_000)
    assert order.detect_drift(4_000, 12_000)
    assert len(order._policy.profile()) == 20
    assert not order.detect_drift(4_000, 12_000)  # which is what rows cost now


def test_combinations_that_no_query_wants_are_not_carried_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each query wants another row of every stream; rows of both never belong together."""
    made: list[Expansion] = []

    class Counted(Expansion):
        def run(self, plan: ExpansionNode) -> None:
            made.append(self)
            super().run(plan)

    monkeypatch.setattr(drop_probing, "Expansion", Counted)
    join, results = Join([STAR, replace(STAR, slot=1)], classes=None), []
    stored = {stream: make_run(np.array([7, 7])) for stream in range(3)}
    for run in stored.values():
        run.lineage[0][:, 0] = [0b01, 0b10]
    join.run(stored, lambda found: None)
    root = make_run(*[np.array([7])] * 3)
    root.lineage[0][:] = 0b11
    join.run({3: root}, lambda found: results.append(len(found)))
    assert sum(results) == 2
    assert sum(each.combined for each in made) == 2 + 2 + 2  # and not 2 + 4 + 8
