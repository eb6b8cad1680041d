"""The experiments of the A-Greedy paper: its settings, its order of methods, timelines, shares."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.bench import agreedy, agreedy_runs
from eddyline.bench.agreedy import RoutedFilters
from eddyline.bench.agreedy_breakdown import TABLE_2_PARTS, break_down, run_table_2
from eddyline.bench.agreedy_claims import compare
from eddyline.bench.agreedy_reasons import reasons
from eddyline.bench.agreedy_runs import METHODS, OWN, PAPER, Run, permuted_phases, with_probability
from eddyline.bench.agreedy_timeline import timelines
from eddyline.bench.harness import Bench
from eddyline.ordering import AsWritten, Policy


def test_all_four_methods_run_with_the_settings_of_the_paper_and_with_those_of_eddyline() -> None:
    assert list(METHODS) == ["A-Greedy", "Sweep", "Independent", "LocalSwaps"]
    assert [make().on_trial for make in PAPER.values()] == [False] * 4
    assert [make().on_trial for make in OWN.values()] == [True] * 4
    probabilities = [make().profile_probability for make in PAPER.values()]
    assert probabilities == [0.01, 0.01, 0.005, 0.01]
    in_fig_12 = [make() for make in with_probability(0.05).values()]
    assert [policy.profile_probability for policy in in_fig_12] == [0.05] * 4
    assert not any(policy.on_trial for policy in in_fig_12)


def test_methods_that_are_not_in_the_order_of_the_paper_are_named() -> None:
    bench = Bench("own")
    pairs = [("a", "b"), ("c", "a"), ("b", "c"), ("a", "d")]
    values = {"a": 1.0, "b": 2.0, "c": 1.5, "d": 1.001}
    assert compare(bench, "fig 0", values, pairs) == [("c", "a"), ("b", "c")]
    (result,) = bench.results
    assert (result.value, result.unit) == (1, "of 4")
    assert result.baseline == (
        "differs from the paper: c 1.500, a 1.000; differs from the paper: b 2.000, c 1.500; "
        "equal: a 1.000, d 1.001"
    )
    assert result.paper.startswith("a better than b; c better than a")


def test_methods_are_compared_by_their_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that misses the best order in one run of five is the worse for it."""
    regular = iter([1.0, 1.0, 1.0, 1.0, 2.0])
    monkeypatch.setattr(agreedy_runs, "optimum_of", lambda answers, cost: 1.0)
    monkeypatch.setattr(agreedy_runs, "simulate", lambda *given: Run(next(regular), 0.5, 0.0))
    bench = Bench("own")
    runs = agreedy_runs.converge(
        bench, "fig 0", [0.5] * 3, 1, np.ones(3), {"some": lambda cost, seed: None}, 10
    )
    assert runs["some"].regular == pytest.approx(1.2)
    assert runs["some"].profiled == pytest.approx(0.5)
    assert bench.results[0].value == 1.0


def test_pairs_are_compared_only_where_the_paper_found_a_difference() -> None:
    bench = Bench("agreedy", quick=True, only="selectivity")
    agreedy.run(bench)
    compared = [r.metric.split(":")[1].strip() for r in bench.results if "pairs" in r.metric]
    assert compared == ["selectivity 0.3", "selectivity 0.7"]


def test_a_timeline_counts_all_evaluations_where_they_were_done() -> None:
    def subject(cost, seed):
        return RoutedFilters(AsWritten(), None, cost, seed)

    bench = Bench("own")
    timelines(bench, {"as written": subject}, rows=20_000, seeds=1)
    (line,) = bench.results
    rng = np.random.default_rng(0)
    after = permuted_phases(rng, 2, 20_000)[1]
    reach = len(after) + np.cumprod(after, axis=1)[:, :-1].sum()
    assert line.value == pytest.approx(reach / 10)
    first = 2_000 + np.cumprod(after[:2_000], axis=1)[:, :-1].sum()
    assert f"after so many rows: 0: {first:,.0f}; 2,000: " in line.baseline


def test_sweep_and_local_swaps_have_less_work_to_learn_than_agreedy() -> None:
    bench = Bench("own")
    shares = break_down(bench, "fig 13", with_probability(0.05), [1] * 8, rows=20_000, seeds=1)
    assert shares["Sweep"] < 0.5 * shares["A-Greedy"]
    assert shares["LocalSwaps"] < 0.5 * shares["A-Greedy"]
    assert len(bench.results) == 4
    assert all(0 < result.value < 100 for result in bench.results)


def test_the_parts_of_table_2_add_up_to_all_of_the_time() -> None:
    bench = Bench("own")
    run_table_2(bench, 3, 0.05, rows=10_000, probes=1)
    assert [r.metric.split(": ")[-1] for r in bench.results] == list(TABLE_2_PARTS)
    assert sum(r.value for r in bench.results) == pytest.approx(100)
    assert sum(r.paper for r in bench.results) == pytest.approx(100)
    assert all(r.value > 0 for r in bench.results)


def test_reasons_repeat_experiments_with_what_they_blame_changed() -> None:
    made: list[Policy] = []

    def routed(make):
        made.append(make())
        return agreedy._without_budget(make)

    bench = Bench("agreedy", quick=True)
    reasons(bench, 20, routed)
    assert [policy.profile_probability for policy in made[:2]] == [0.005, 0.005]
    assert [(p.name, p.tuples_min) for p in made[2:6]] == [
        ("sweep", tuples) for tuples in (50, 150, 300, 500)
    ]
    assert [(p.name, p.window_tuples) for p in made[6:9]] == [
        ("agreedy", tuples) for tuples in (1_000, 200, 100)
    ]
    assert not any(policy.on_trial for policy in made)
    work = {r.metric: r.value for r in bench.results}
    fast = "fig 19: a change every 20,000 rows: work, A-Greedy, a window of {:,} / optimum"
    assert work[fast.format(100)] < work[fast.format(1_000)]
    assert all(value >= 0.99 for value in work.values())
