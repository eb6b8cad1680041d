"""What a router decides: drift, orders, budgets, what is handed on, and all of it on record."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import EddylineError
from eddyline.fabric import Router, RouterOptions
from eddyline.journal import Record
from eddyline.journal.events import (
    BudgetExhausted,
    DriftDetected,
    KnowledgeRestored,
    OrderChanged,
    TrialEnded,
)
from eddyline.operators import ArrowPredicate, ColumnReader
from eddyline.ordering import AGreedy, Policy
from eddyline.testing.synthetic import SyntheticFilter, draw_answers, make_filters, to_columns


def trials(router: Router, *verdicts: str, subject: str = "order") -> list[Record]:
    """Return the records of trials that ended with one of the verdicts."""
    ended = [r for r in router.journal.of(TrialEnded) if r.event.subject == subject]
    return [r for r in ended if r.event.verdict in verdicts]


def drifting_router(probability: float = 0.02, **options: Any) -> tuple[Router, int]:
    """Run filters whose selectivities change places in the middle; return router and chunk."""
    rng = np.random.default_rng(5)
    one = draw_answers(rng, 100_000, [0.9, 0.9, 0.1], correlation=1)
    two = draw_answers(rng, 100_000, [0.1, 0.9, 0.9], correlation=1)
    filters, readers = make_filters([0] * 3)
    router = Router(
        filters,
        readers,
        AGreedy(profile_probability=probability),
        options=RouterOptions(costs_us=(1.0,) * 3, seed=0, **options),
    )
    for begin in range(0, 200_000, 4_096):
        part = np.concatenate([one, two])[begin : begin + 4_096]
        router.route(to_columns(part), len(part))
    return router, 4_096


def learn_once(
    selectivities: list[float],
    seed: int,
    knowledge: list[dict[str, Any]] | None = None,
    budget: float = 0.01,
) -> Router:
    """Run filters over a short job's rows, from nothing or from what another has learnt."""
    answers = draw_answers(np.random.default_rng(seed), 20_000, selectivities, correlation=1)
    filters, readers = make_filters([0] * 3)
    options = RouterOptions(costs_us=(10.0,) * 3, seed=seed, budget=budget)
    router = Router(filters, readers, options=options)
    if knowledge is not None:
        router.restore(knowledge)
    router.route(to_columns(answers), len(answers))
    return router


class TestDecisions:
    def test_every_change_of_order_is_on_record_with_its_numbers(self) -> None:
        router, _ = drifting_router()
        changes = router.journal.of(OrderChanged)
        assert changes[0].event.before == ("F0", "F1", "F2")
        assert changes[0].numbers["after"][0] == "F2"
        for record in changes:
            assert record.numbers["cost_after_us"] < record.numbers["cost_before_us"]
        assert router.order()[0] == "F0"

    def test_an_abrupt_change_is_noticed_within_two_chunks(self) -> None:
        router, chunk = drifting_router()
        drift = router.journal.of(DriftDetected)
        assert len(drift) == 1
        assert 100_000 - chunk <= drift[0].at_rows <= 100_000 + chunk
        follows = [r for r in router.journal.of(OrderChanged) if r.at_rows >= drift[0].at_rows]
        assert follows[0].numbers["after"][0] == "F0"
        assert follows[0].at_rows <= 100_000 + 2 * chunk

    def test_a_change_is_kept_after_its_trial(self) -> None:
        router, _ = drifting_router()
        kept = trials(router, "kept")
        assert kept
        assert all(r.event.after_us <= 1.15 * r.event.before_us for r in kept)
        assert not trials(router, "reverted")

    def test_a_change_that_costs_more_is_undone_and_tried_ever_more_rarely(self) -> None:
        class Stubborn(Policy):
            """Wants the worst order, whatever it is shown."""

            def learn(self, evidence):
                return self.change_to([2, 1, 0])

        rng = np.random.default_rng(6)
        answers = draw_answers(rng, 400_000, [0.1, 0.9, 0.95], correlation=1)
        filters, readers = make_filters([0] * 3)
        options = RouterOptions(costs_us=(1.0,) * 3, seed=0)
        router = Router(filters, readers, Stubborn(), options=options)
        router.route(to_columns(answers), len(answers))
        undone = trials(router, "reverted")
        assert 2 <= len(undone) <= 5
        for record in undone:
            assert record.event.after_us > record.event.before_us
            assert record.event.before == ("F0", "F1", "F2")
        gaps = np.diff([record.at_rows for record in undone])
        assert (gaps[1:] > 1.5 * gaps[:-1]).all()

    def test_every_change_ends_with_a_record(self) -> None:
        router, _ = drifting_router()
        begun = len(router.journal.of(OrderChanged))
        ended = len(trials(router, "kept", "reverted", "interrupted"))
        assert begun - ended in (0, 1)  # the last may still be on trial

    def test_a_policy_that_forgets_a_predicate_is_caught(self) -> None:
        class Forgetful(Policy):
            name = "forgetful"

            def learn(self, evidence):
                return self.change_to([0])

        filters, readers = make_filters([0] * 2)
        router = Router(filters, readers, Forgetful())
        with pytest.raises(
            EddylineError, match=r"'forgetful' returned \[0\], which is not a permutation"
        ):
            router.route(to_columns(np.ones((1_000, 2), dtype=bool)), 1_000)

    def test_profiling_keeps_to_its_budget(self) -> None:
        router, _ = drifting_router(probability=0.2, budget=0.02)
        advance = 20_000
        assert router.totals.profiled.sum() < 0.025 * router.totals.seen.sum() + advance
        assert router.journal.of(BudgetExhausted)
        unlimited, _ = drifting_router(probability=0.2, budget=None)
        assert unlimited.totals.profiled.sum() > 2 * router.totals.profiled.sum()

    def test_no_budget_means_no_profiling_beyond_the_advance(self) -> None:
        router, _ = drifting_router(budget=0.0)
        assert router.totals.profiled.sum() <= 20_500

    def test_the_same_seed_gives_the_same_journal(self) -> None:
        one, _ = drifting_router()
        other, _ = drifting_router()
        assert list(one.journal) == list(other.journal)

    def test_what_was_learnt_is_handed_on(self) -> None:
        learnt, _ = drifting_router()
        filters, readers = make_filters([0] * 3)
        fresh = Router(filters, readers, AGreedy(), options=RouterOptions(seed=1))
        fresh.restore(learnt.snapshot())
        assert fresh.order() == learnt.order()
        assert fresh.snapshot()[0].tuples.tolist() == learnt.snapshot()[0].tuples.tolist()
        assert isinstance(fresh.journal[0].event, KnowledgeRestored)

    def test_an_heir_has_nothing_to_find_out_before_the_first_row(self) -> None:
        selectivities = [0.9, 0.9, 0.1]
        learnt = learn_once(selectivities, seed=3)
        heir = learn_once(selectivities, seed=4, knowledge=learnt.snapshot())
        assert heir.order() == learnt.order()
        assert not heir.journal.of(DriftDetected, OrderChanged)

    def test_an_heir_profiles_only_what_it_has_earned(self) -> None:
        selectivities = [0.9, 0.9, 0.1]
        learnt = learn_once(selectivities, seed=3, budget=0.0)
        heir = learn_once(selectivities, seed=4, knowledge=learnt.snapshot(), budget=0.0)
        assert learnt.totals.profiled.sum() >= 2 * 24  # the first profile, and the advance
        assert heir.totals.profiled.sum() == 0

    def test_an_heir_takes_large_chunks_from_the_start(self) -> None:
        learnt = learn_once([0.9, 0.9, 0.1], seed=3)
        sizes: list[int] = []

        class Noting(SyntheticFilter):
            def evaluate(self, batch, rows):
                sizes.append(batch.rows)
                return super().evaluate(batch, rows)

        filters = [Noting(f"F{n}", n) for n in range(3)]
        for knowledge in (None, learnt.snapshot()):
            sizes.clear()
            _, readers = make_filters([0] * 3)
            router = Router(filters, readers, options=RouterOptions(costs_us=(10.0,) * 3, seed=5))
            if knowledge is not None:
                router.restore(knowledge)
            answers = draw_answers(np.random.default_rng(5), 12_288, [0.9, 0.9, 0.1], 1)
            router.route(to_columns(answers), 12_288)
            assert min(sizes) == (64 if knowledge is None else 4_096)

    def test_an_heir_notices_at_once_that_the_rows_have_changed(self) -> None:
        learnt = learn_once([0.9, 0.9, 0.1], seed=3)
        heir = learn_once([0.1, 0.9, 0.9], seed=4, knowledge=learnt.snapshot())
        assert heir.journal.of(DriftDetected)[0].at_rows == 0
        assert heir.order()[0] == "F0"

    def test_the_estimate_of_the_written_order_is_close(self) -> None:
        router, _ = drifting_router()
        rng = np.random.default_rng(5)
        one = draw_answers(rng, 100_000, [0.9, 0.9, 0.1], correlation=1)
        two = draw_answers(rng, 100_000, [0.1, 0.9, 0.9], correlation=1)
        answers = np.concatenate([one, two])
        passed_so_far = np.cumprod(answers, axis=1)[:, :-1].sum()
        truth = len(answers) + passed_so_far
        assert router.totals.written_seen.sum() == pytest.approx(truth, rel=0.06)

    def test_memory_is_bounded(self) -> None:
        router, _ = drifting_router()
        assert len(router.segments[0].tactic.policy.profile()) <= 500
        assert len(router.journal) <= 1_000


def test_one_predicate_learns_nothing_and_profiles_nothing() -> None:
    filters, readers = make_filters([0])
    router = Router(filters, readers)
    router.route(to_columns(np.array([[True], [False]] * 5_000)), 10_000)
    assert router.totals.profiled.sum() == 0
    assert len(router.journal) == 0
    totals = router.totals
    assert totals.kept == totals.passed[0] == 5_000
    assert totals.seen[0] == totals.written_seen[0] == totals.in_order_seen[0] == 10_000
    assert totals.in_order_us[0] == totals.busy_us[0]


def test_the_time_of_the_only_predicate_is_booked() -> None:
    def slow(answer: pa.Array) -> pa.Array:
        time.sleep(0.002)
        return answer

    router = Router([ArrowPredicate("slow", (0,), slow)], [ColumnReader("a")])
    began = time.perf_counter()
    router.route(to_columns(np.array([[True], [False]] * 5)), 10)
    elapsed_us = (time.perf_counter() - began) * 1e6
    assert 2_000 <= router.totals.busy_us[0] <= elapsed_us
