"""Parts of `eddyline bench joins` that need no Spark: they run, and count what they promise."""

from __future__ import annotations

import pytest

from eddyline.bench import joins
from eddyline.bench.harness import Bench, Result
from eddyline.joins import search_pace


def results_of(part: str) -> dict[str, Result]:
    bench = Bench("joins", quick=True, rounds=1, only=part)
    joins.run(bench)
    return {result.metric: result for result in bench.results}


def value_of(results: dict[str, Result], words: str) -> float:
    (found,) = [result.value for metric, result in results.items() if words in metric]
    return found


def test_classes_save_on_skewed_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_pace, "PROFILE_WORK", 1 << 12)
    monkeypatch.setattr(search_pace, "SEARCH_WORK", 1 << 13)
    results = results_of("classes")
    assert value_of(results, "skewed (Poisson) rows: comparisons, one adaptive order") > 1.2
    assert value_of(results, "uniform rows: comparisons, one adaptive order") > 0.8
    assert {result.paper for result in results.values()} == {"1.44", "0.978", None}


def test_functions_are_called_as_often_whatever_the_articles() -> None:
    results = results_of("functions")
    assert len(results) == 3
    assert {result.value for result in results.values()} == {500}
    assert [result.baseline for result in results.values()] == [
        "PullUp: 500",
        "PullUp: 5,000",
        "PullUp: 50,000",
    ]


def test_a_join_for_each_query_probes_more() -> None:
    results = results_of("plans")
    assert len(results) == 4
    baseline = str(
        next(r.baseline for metric, r in results.items() if "20 queries: time, PushD" in metric)
    )
    own, shared = (int(text.split()[-1].replace(",", "")) for text in baseline.split(" against "))
    assert own > 5 * shared


def test_a_cascade_stores_pairs_too() -> None:
    results = results_of("cascade")
    # 200 places with 5 readings of each stream: 3,000 rows, and 25 pairs for each place.
    assert value_of(results, "cascade / SteMs") == pytest.approx((3_000 + 5_000) / 3_000)
    assert value_of(results, "indexed again") == 5_000


def test_the_time_of_agreedy_is_split_as_in_the_paper() -> None:
    results = results_of("overhead")
    assert len(results) == 20
    assert results["table 2: n=8, p=0.05: tuple processing"].paper == 84.77
    for filters, probability in ((3, 0.01), (8, 0.05)):
        label = f"table 2: n={filters}, p={probability}: "
        shares = [result.value for metric, result in results.items() if metric.startswith(label)]
        assert sum(shares) == pytest.approx(100)
        assert min(shares) >= 0
        assert shares[0] > 30


def test_policies_find_the_new_best_order_of_probes() -> None:
    results = results_of("adaptivity")
    assert len(results) == 2
    assert all(0 < result.value <= 8_000 for result in results.values())


@pytest.mark.parametrize(("part", "figure", "policies"), [("windows", 9, 3), ("profiling", 12, 4)])
def test_probes_are_compared_with_the_best_order(part: str, figure: int, policies: int) -> None:
    results = results_of(part)
    assert len(results) == policies
    assert all(metric.startswith(f"fig {figure}") for metric in results)
    assert all(0.95 < result.value < 1.5 for result in results.values())


def test_a_mesh_is_timed_against_a_single_plan_and_eddies() -> None:
    results = results_of("mesh")
    papers = [r.paper for metric, r in results.items() if metric.startswith("fig 10 a")]
    assert papers == ["1.44", "1.27", "1.18", "0.978", "1.39", "1.24"]
    assert sum(metric.startswith("fig 10 b") for metric in results) == 8
    overheads = [r.value for metric, r in results.items() if metric.startswith("fig 10 c")]
    assert all(0 < share < 100 for share in overheads)
    for name in ("skewed (Poisson)", "uniform"):
        probes = {
            variant: value_of(results, f"fig 10: {name}: probes of a row, {variant}")
            for variant in ("mesh", "single plan", "eddy, batches", "eddy, row by row")
        }
        assert all(1 <= each <= 9 for each in probes.values())
        assert probes["eddy, batches"] < 1.3 * probes["single plan"]


def test_results_are_counted_over_time() -> None:
    results = results_of("produced")
    assert len(results) == 12
    assert all(result.value > 0 for result in results.values())
    by_work = [r.value for metric, r in results.items() if "of the comparisons" in metric]
    assert len(by_work) == 6
