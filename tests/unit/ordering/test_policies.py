"""Every policy passes the conformance suite, and the suite notices policies that are broken."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from eddyline.bench.elsewhere import ELSEWHERE
from eddyline.errors import InvalidPolicyError
from eddyline.fabric import Router, RouterOptions
from eddyline.ordering import (
    POLICIES,
    AGreedy,
    Change,
    Evidence,
    Lottery,
    Policy,
    Sweep,
    Tickets,
    resolve_policy,
)
from eddyline.ordering.static import best_ordering, ordering_cost
from eddyline.testing.policy_checks import POLICY_CHECKS, check_policy
from eddyline.testing.synthetic import draw_answers, make_filters, to_columns

EVERY_POLICY = [*POLICIES.values(), *ELSEWHERE.values()]
ADAPTIVE = [policy for policy in POLICIES.values() if policy.learns]


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("policy", EVERY_POLICY, ids=lambda policy: policy.name)
def test_conforms(policy: type[Policy], check: Callable[[type[Policy]], None]) -> None:
    check(policy)


@pytest.mark.parametrize("policy", ADAPTIVE, ids=lambda p: p.name)
def test_finds_a_good_order_for_independent_filters(policy) -> None:
    rng = np.random.default_rng(4)
    answers = draw_answers(rng, 200_000, [0.95, 0.8, 0.6, 0.15], correlation=1)
    filters, readers = make_filters([0] * 4)
    router = Router(
        filters,
        readers,
        policy(),
        options=RouterOptions(budget=None, chunk_rows=1_000, costs_us=(1.0,) * 4, seed=0),
    )
    for begin in range(0, len(answers), 1_000):
        if begin == 100_000:
            before = router.totals.seen.sum()
        router.route(to_columns(answers[begin : begin + 1_000]), 1_000)
    per_row = (router.totals.seen.sum() - before) / 100_000
    best = ordering_cost(best_ordering(~answers, np.ones(4)), ~answers, np.ones(4))
    # A policy that draws orders takes a bad one from time to time; the others settle.
    assert per_row <= (1.6 if policy.draws_orders else 1.12) * best


def test_a_class_is_refused_where_a_policy_is_wanted() -> None:
    with pytest.raises(InvalidPolicyError, match=r"pass an object: AGreedy\(\)"):
        resolve_policy(AGreedy)


def test_every_router_gets_a_policy_of_its_own() -> None:
    own = AGreedy(window_tuples=7)
    resolved = resolve_policy(own)
    assert resolved is not own
    assert resolved.window_tuples == 7
    assert resolve_policy("tickets") is not resolve_policy("tickets")


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="profile_probability"):
        AGreedy(profile_probability=0)
    for policy in (AGreedy, *(POLICIES[n] for n in ("sweep", "independent", "local_swaps"))):
        with pytest.raises(ValueError, match="alpha must be in"):
            policy(alpha=1.5)
    for policy in (AGreedy, *(POLICIES[n] for n in ("independent", "local_swaps"))):
        with pytest.raises(ValueError, match="window_tuples must be at least 1"):
            policy(window_tuples=0)
    with pytest.raises(ValueError, match="stage_tuples must be at least 1"):
        Sweep(stage_tuples=0)
    for policy in (POLICIES["lottery"], Tickets):
        with pytest.raises(ValueError, match="window_batches must be at least 1"):
            policy(window_batches=0)


def test_paper_settings_correct_every_violation_even_one_that_does_not_pay() -> None:
    """Greedy is not optimal: here its order costs more than the one it replaces."""
    drops = np.zeros((26, 3), dtype=bool)
    drops[:10, 0] = drops[10:20, 1] = True
    drops[4:16, 2] = True
    drops[20:, 2] = True
    policy = AGreedy.paper()
    policy.tuples_min = 1
    policy.start(3)
    seen = np.array([26, 16, 6])
    policy.learn(Evidence(26, policy.order, seen, seen, np.ones(3), drops))
    assert policy.order[0] == 2
    assert not policy.on_trial


# --- the safeguards of each policy ----------------------------------------------------------------

PROFILING = [POLICIES[name] for name in ("agreedy", "sweep", "independent", "local_swaps")]


def profiled(policy: Policy, drops: list[int], cost_us: list[float] | None = None) -> Evidence:
    """Return evidence with that many tuples dropped by filter 0, 1, ... alone."""
    tuples = np.repeat(np.eye(policy.filters, dtype=bool), drops, axis=0)
    seen = np.full(policy.filters, 1_000)
    cost = np.ones(policy.filters) if cost_us is None else np.array(cost_us)
    return Evidence(1_000, policy.order, seen, seen, cost, tuples)


@pytest.mark.parametrize("policy", PROFILING, ids=lambda policy: policy.name)
def test_a_filter_that_drops_more_stays_behind_if_it_costs_more(policy) -> None:
    for cost_us, expected in (([1.0, 1.0], (1, 0)), ([1.0, 3.0], (0, 1))):
        one = policy(tuples_min=10)
        one.start(2)
        one.learn(profiled(one, [30, 60], cost_us))
        assert one.order == expected


@pytest.mark.parametrize("policy", PROFILING, ids=lambda policy: policy.name)
def test_every_position_is_compared_at_its_own_cost(policy) -> None:
    one = policy(tuples_min=10)
    one.start(3)
    for _ in range(2):  # a stage of Sweep for each position
        one.learn(profiled(one, [300, 150, 50], [1.0, 10.0, 1.0]))
        if isinstance(one, Sweep) and one.swept == 1:
            one._begin_stage(2)
    assert one.order == (0, 2, 1)


@pytest.mark.parametrize("policy", PROFILING, ids=lambda policy: policy.name)
def test_alpha_keeps_filters_that_hardly_differ_in_place(policy) -> None:
    for alpha, expected in ((1.0, (1, 0)), (0.7, (0, 1))):
        one = policy(tuples_min=10, alpha=alpha)
        one.start(2)
        one.learn(profiled(one, [40, 50]))
        assert one.order == expected


def test_agreedy_corrects_where_alpha_says_so_and_leaves_positions_before_it() -> None:
    one = AGreedy(tuples_min=10, alpha=0.7, gain_min=0.0, prior_drops=0.0)
    one.start(3)
    tuples = np.array(
        [[1, 1, 0]] * 39 + [[1, 0, 0]] + [[0, 1, 0]] * 5 + [[0, 0, 1]] * 45, dtype=bool
    )
    seen = np.full(3, 100)
    # 40, 44 and 45 tuples at the first position are alike; 5 and 45 at the second are not.
    change = one.learn(Evidence(100, one.order, seen, seen, np.ones(3), tuples))
    assert change.numbers["position"] == 1
    assert one.order == (0, 2, 1)


@pytest.mark.parametrize("policy", PROFILING, ids=lambda policy: policy.name)
def test_no_decision_rests_on_fewer_tuples_than_tuples_min(policy) -> None:
    for tuples, expected in (([10, 39], (0, 1)), ([10, 40], (1, 0))):
        one = policy(tuples_min=50)
        one.start(2)
        one.learn(profiled(one, tuples))
        assert one.order == expected


@pytest.mark.parametrize("name", ["agreedy", "independent", "local_swaps"])
def test_tuples_that_left_the_window_no_longer_count(name) -> None:
    one = POLICIES[name](window_tuples=100, tuples_min=10)
    one.start(2)
    one.learn(profiled(one, [100, 0]))
    assert one.order == (0, 1)
    one.learn(profiled(one, [30, 70]))  # 130 to 70 if nothing expired
    assert one.order == (1, 0)


def test_sweep_counts_each_stage_from_zero() -> None:
    one = Sweep(stage_tuples=100, tuples_min=10)
    one.start(2)
    one.learn(profiled(one, [100, 0]))  # ends the stage
    one.learn(profiled(one, [30, 70]))
    assert one.order == (1, 0)


def test_each_stage_of_sweep_needs_tuples_min_of_its_own() -> None:
    one = Sweep(stage_tuples=100, tuples_min=50)
    one.start(3)
    one.learn(profiled(one, [60, 40, 0]))
    assert one.swept == 2
    assert one.learn(profiled(one, [0, 0, 49])) is None
    assert one.swept == 2
    assert one.learn(profiled(one, [0, 0, 1])).after == (2, 0, 1)


@pytest.mark.parametrize(
    ("policy", "probability", "window"),
    [
        ("agreedy", 0.01, 1000),
        ("sweep", 0.01, 500),
        ("independent", 0.005, 1000),
        ("local_swaps", 0.01, 1000),
    ],
)
def test_paper_settings_are_those_of_table_1_and_without_trials(
    policy: str, probability: float, window: int
) -> None:
    made = POLICIES[policy].paper()
    assert (made.profile_probability, made.window_tuples, made.alpha) == (probability, window, 0.9)
    assert not made.on_trial
    assert POLICIES[policy]().on_trial
    assert POLICIES[policy].paper(0.05).profile_probability == 0.05


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("agreedy", [3, 2, 1, 0]),
        ("independent", [3, 2, 1, 0]),
        ("sweep", [1, 1, 0, 0]),
        ("local_swaps", [1, 1, 1, 0]),
    ],
)
def test_further_evaluations_of_a_profiled_row_by_where_it_was_dropped(name, extra) -> None:
    """Sweep evaluates one filter more, the one in its stage; LocalSwaps the next one."""
    one = POLICIES[name](tuples_min=10)
    one.start(4)
    if name == "sweep":
        one._begin_stage(2)
    assert [len(one.wanted(position)) for position in range(4)] == extra


@pytest.mark.parametrize("name", ["sweep", "local_swaps"])
def test_a_router_evaluates_one_filter_more_on_a_profiled_row(name) -> None:
    filters, readers = make_filters([0] * 6)
    options = RouterOptions(budget=None, chunk_rows=1_000, costs_us=(1.0,) * 6, seed=0)
    router = Router(filters, readers, POLICIES[name](profile_probability=1.0), options=options)
    answers = draw_answers(np.random.default_rng(0), 4_000, [0.5] * 6, correlation=2)
    router.route(to_columns(answers), len(answers))
    dropped = len(answers) - router.totals.kept
    assert 0.2 * dropped < router.totals.profiled.sum() <= dropped


@pytest.mark.parametrize("policy", PROFILING, ids=lambda policy: policy.name)
def test_a_change_that_is_declined_leaves_order_and_evidence(policy) -> None:
    one = policy(tuples_min=60, alpha=1.0)
    one.start(3)
    change = one.learn(profiled(one, [20, 50, 0]))
    assert change.before == (0, 1, 2)
    assert one.order == (1, 0, 2)
    one.decline(change)
    assert one.order == (0, 1, 2)
    if isinstance(one, Sweep):
        assert one.swept == 2  # the next position has its turn, else it would never have one
        return
    change = one.learn(profiled(one, [1, 0, 0]))  # 71 tuples, 70 of them from before
    assert change is not None
    assert change.after == (1, 0, 2)


def test_sweep_checks_one_position_after_the_other_and_begins_again() -> None:
    one = Sweep(stage_tuples=100, tuples_min=10)
    one.start(4)
    swept = []
    for _ in range(7):
        swept.append(one.swept)
        one.learn(profiled(one, [40, 30, 20, 10]))
    assert swept == [1, 2, 3, 1, 2, 3, 1]


def test_a_correction_reads_the_window_once_for_each_position_that_may_change() -> None:
    one = AGreedy(tuples_min=10, alpha=1.0, gain_min=0.0)
    one.start(4)
    change = one.learn(profiled(one, [100, 20, 30, 10]))
    assert change.after == (0, 2, 1, 3)
    assert (change.numbers["position"], change.numbers["scans"]) == (1, 2)


def test_agreedy_corrects_only_violations_that_gain_enough() -> None:
    for gain_min, expected in ((0.01, (1, 0)), (0.2, (0, 1))):
        one = AGreedy(tuples_min=10, alpha=1.0, gain_min=gain_min)
        one.start(2)
        one.learn(profiled(one, [40, 60]))  # 1.6 evaluations a tuple before, 1.4 after
        assert one.order == expected


def test_a_correction_that_gains_next_to_nothing_is_left_by_default_but_made_in_the_paper() -> None:
    for one, expected in ((AGreedy(tuples_min=10), (0, 1, 2)), (AGreedy.paper(), (0, 2, 1))):
        one.start(3)
        one.learn(profiled(one, [450, 10, 14]))  # 0.4 evaluations less in 100
        assert one.order == expected


def first_places(
    policy: Policy, passed: list[int], cost_us: list[float], draws: int = 4_000
) -> np.ndarray:
    """Return the share of batches in which each filter came first."""
    counts = np.zeros(policy.filters)
    seen = np.full(policy.filters, 1_000)
    none = np.zeros((0, policy.filters), dtype=bool)
    for _ in range(draws):
        evidence = Evidence(1_000, policy.order, seen, np.array(passed), np.array(cost_us), none)
        policy.learn(evidence)
        counts[policy.order[0]] += 1
    return counts / counts.sum()


@pytest.mark.parametrize(
    "make",
    [POLICIES["lottery"], lambda: Tickets(lottery_share=1.0)],
    ids=["lottery", "tickets"],
)
def test_a_lottery_is_won_in_proportion_to_tickets(make) -> None:
    policy = make()
    policy.start(3, seed=0)
    shares = first_places(policy, [400, 700, 900], [1.0, 1.0, 1.0])
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.03)


@pytest.mark.parametrize(("window_batches", "follows"), [(2, True), (1_000, False)])
def test_old_tickets_of_a_lottery_fade_within_its_window(
    window_batches: int, follows: bool
) -> None:
    policy = Lottery(window_batches)
    policy.start(2, seed=0)
    first_places(policy, [0, 1_000], [1.0, 1.0], draws=200)  # the first filter drops everything
    shares = first_places(policy, [1_000, 0], [1.0, 1.0], draws=40)
    assert bool(shares[1] > 0.6) is follows


def test_a_lottery_counts_costs() -> None:
    policy = POLICIES["lottery"]()
    policy.start(2, seed=0)
    assert first_places(policy, [500, 500], [1.0, 4.0]) == pytest.approx([0.8, 0.2], abs=0.03)


def test_tickets_count_costs_that_differ_by_more_than_eight_times() -> None:
    for cost_us, expected in (([1.0, 8.0], (1, 0)), ([1.0, 14.0], (0, 1))):
        policy = Tickets(lottery_share=1e-9)
        policy.start(2, seed=0)
        seen, none = np.full(2, 1_000), np.zeros((0, 2), dtype=bool)
        passed = np.array([600, 400])
        policy.learn(Evidence(1_000, (0, 1), seen, passed, np.array(cost_us), none))
        assert policy.order == expected


@pytest.mark.parametrize(
    "make",
    [POLICIES["lottery"], lambda: Tickets(lottery_share=1.0)],
    ids=["lottery", "tickets"],
)
def test_a_filter_that_drops_nothing_is_still_drawn_first_at_times(make) -> None:
    policy = make()
    policy.start(2, seed=1)
    seen, none = np.full(2, 100_000_000), np.zeros((0, 2), dtype=bool)
    evidence = Evidence(1_000, (0, 1), seen, np.array([0, 100_000_000]), np.ones(2), none)
    firsts = 0
    for _ in range(20_000):
        policy.learn(evidence)
        firsts += policy.order[0] == 1
    assert 5 <= firsts <= 400


def tickets_evidence(policy: Policy, passed: list[int]) -> Evidence:
    seen = np.full(policy.filters, 1_000)
    none = np.zeros((0, policy.filters), dtype=bool)
    return Evidence(1_000, policy.order, seen, np.array(passed), np.ones(policy.filters), none)


def test_tickets_report_a_change_of_their_ranking_but_not_a_drawn_order() -> None:
    policy = Tickets(lottery_share=0.5)
    policy.start(3, seed=0)
    changes, orders = [], set()
    for _ in range(40):
        changes.append(policy.learn(tickets_evidence(policy, [900, 500, 100])))
        orders.add(policy.order)
    assert len(orders) > 1  # some were drawn
    assert [(c.before, c.after) for c in changes if c is not None] == [((0, 1, 2), (2, 1, 0))]


def test_tickets_fade() -> None:
    policy = Tickets(window_batches=16)
    policy.start(2, seed=0)
    for _ in range(400):
        policy.learn(tickets_evidence(policy, [600, 900]))
    assert policy.counts()[0] == pytest.approx((16_000, 6_400))
    for _ in range(100):
        policy.learn(tickets_evidence(policy, [900, 600]))
    assert policy.shares() == pytest.approx([0.2, 0.8], abs=0.01)


def test_an_operator_that_all_queries_of_another_need_comes_first_unless_it_costs_much_more() -> (
    None
):
    for cost_us, expected in ((1.0, (1, 2, 0)), (100.0, (2, 0, 1))):
        policy = Tickets(lottery_share=1e-9)
        policy.start(3, seed=0)
        policy.weigh([3, 1, 5], {0: [1], 2: [1]})  # all queries of 0 and of 2 need 1
        seen, none = np.full(3, 1_000), np.zeros((0, 3), dtype=bool)
        passed, costs = np.full(3, 500), np.array([1.0, cost_us, 1.0])
        policy.learn(Evidence(1_000, policy.order, seen, passed, costs, none))
        assert policy.order == expected


def test_of_two_operators_that_come_before_another_the_one_with_more_tickets_is_first() -> None:
    policy = Tickets(lottery_share=1e-9)
    policy.start(3, seed=0)
    policy.weigh([1, 1, 1], wider={2: [0, 1]})
    policy.learn(tickets_evidence(policy, [900, 800, 100]))
    assert policy.order == (1, 0, 2)


def test_tickets_keep_the_weights_of_operators_when_they_forget() -> None:
    policy = Tickets(lottery_share=1e-9)
    policy.start(2, seed=0)
    policy.weigh([1, 5])
    policy.forget()
    policy.learn(tickets_evidence(policy, [400, 600]))
    assert policy.order == (1, 0)


# --- policies that the suite must refuse ----------------------------------------------------------


class Rotating(Policy):
    """Turns the order by one place after each batch; the broken policies derive from it."""

    def learn(self, evidence):
        return self.change_to([*self.order[1:], self.order[0]] if self.filters > 1 else self.order)


class ChangesSilently(Rotating):
    def learn(self, evidence):
        super().learn(evidence)


class ReportsWrongOrder(Rotating):
    def learn(self, evidence):
        change = super().learn(evidence)
        return change and Change(change.after, change.before)


class DropsFilter(Rotating):
    def learn(self, evidence):
        return self.change_to(self.order[1:])


class FailsWithoutRows(Rotating):
    def learn(self, evidence):
        return super().learn(evidence) if 1_000 // evidence.rows else None


class AsksForEarlierPositions(Rotating):
    def wanted(self, position):
        return range(self.filters)


class IgnoresSeed(Rotating):
    def learn(self, evidence):
        return self.change_to(np.random.default_rng().permutation(self.filters).tolist())


class LosesStateWhenPickled(Rotating):
    class Memory:
        def __init__(self):
            self.batches = 0

        def __reduce__(self):
            return type(self), ()

    def reset(self):
        self.memory = self.Memory()

    def learn(self, evidence):
        self.memory.batches += 1
        return self.change_to(np.roll(range(self.filters), self.memory.batches // 3).tolist())


class NeverForgets(AGreedy):
    def forget(self):
        pass


class RefusesToAdopt(Rotating):
    def adopt(self, order):
        pass


class AcceptsAnyOrder(Rotating):
    def start(self, filters, order=None, seed=None):
        super().start(filters, seed=seed)
        self.order = self.order if order is None else tuple(order)


class TriesDrawnOrders(Rotating):
    draws_orders = True


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (ChangesSilently, "but `learn` returned None"),
        (ReportsWrongOrder, "does not lead from"),
        (DropsFilter, "is not a permutation"),
        (AsksForEarlierPositions, "later positions only"),
        (IgnoresSeed, "same seed"),
        (LosesStateWhenPickled, "after pickling"),
        (NeverForgets, "`forget` left tuples"),
        (RefusesToAdopt, "`adopt` left the order"),
        (AcceptsAnyOrder, "`start` accepted"),
        (TriesDrawnOrders, "cannot be on trial"),
    ],
)
def test_the_suite_refuses(policy: type[Policy], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_policy(policy)


def test_the_suite_refuses_a_policy_that_needs_rows() -> None:
    with pytest.raises(ZeroDivisionError):
        check_policy(FailsWithoutRows)


def test_the_suite_accepts_the_policy_that_the_broken_ones_derive_from() -> None:
    check_policy(Rotating)
