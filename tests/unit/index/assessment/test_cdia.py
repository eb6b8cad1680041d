"""CDIA loses no request, and keeps the bounds of definition 5."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.index.assessment import CDIA, benefits
from eddyline.index.assessment.cdia import Combination
from tests.unit.index.streams import Batch, bounds, feed, feed_table_2, streams

combinations = st.sampled_from(["random", "highest_count"])


@given(streams(), bounds(), combinations)
def test_conserves_counts_and_bounds_frequencies(
    stream: list[Batch], limits: tuple[float, float], combination: Combination
) -> None:
    error, threshold = limits
    assessment = CDIA(error, threshold, combination)
    truth = feed(assessment, stream)
    result = assessment.frequencies()
    assert sum(result.values()) == pytest.approx(1)
    for pattern, share in result.items():
        served = sum(true for other, true in truth.items() if benefits(pattern, other))
        assert truth.get(pattern, 0) - error - 1e-9 <= share <= served + 1e-9
        assert not pattern or share >= threshold - error - 1e-9


@given(streams(), bounds(), combinations)
def test_finds_every_pattern_that_reaches_the_threshold(
    stream: list[Batch], limits: tuple[float, float], combination: Combination
) -> None:
    error, threshold = limits
    assessment = CDIA(error, threshold, combination)
    truth = feed(assessment, stream)
    frequent = {pattern for pattern, share in truth.items() if share >= threshold}
    assert frequent <= set(assessment.frequencies())


def test_random_combination_of_table_2_merges_into_either_parent() -> None:
    into = {}
    for seed in range(10):
        assessment = CDIA(0.001, 0.05, "random", seed)
        feed_table_2(assessment)
        result = assessment.frequencies()
        assert (0, 1) not in result
        into["first" if (0,) in result else "second"] = result
    assert into["first"][0,] == pytest.approx(0.08)
    assert into["second"][1,] == pytest.approx(0.14)
    assert into["second"][()] == pytest.approx(0.04)


def test_highest_count_of_table_2_merges_into_the_second_column() -> None:
    assessment = CDIA(0.001, 0.05, "highest_count")
    feed_table_2(assessment)
    assert assessment.frequencies() == pytest.approx(
        {(0, 1, 2): 0.46, (0, 2): 0.16, (1, 2): 0.1, (1,): 0.14, (2,): 0.1, (): 0.04}
    )


def test_compression_merges_rare_leaves_only() -> None:
    # Segments of 4. After 16 requests (1,) is rare but serves (1, 2), which is frequent.
    assessment = CDIA(error=0.25, threshold=0.3)
    assessment.add((1,))
    assessment.add((0,))
    assessment.add((1, 2), 14)
    assert assessment.entries == 3  # (0,) went to the new top node
    assert assessment.frequencies() == pytest.approx({(1, 2): 14 / 16, (): 2 / 16})


def test_a_parent_that_became_a_leaf_is_merged_in_the_same_compression() -> None:
    assessment = CDIA(error=0.25, threshold=0.3)
    for pattern in [(), (0,), (0, 1)]:
        assessment.add(pattern)
    assessment.add((2,), 13)
    assert assessment.entries == 2
    assert assessment.frequencies() == pytest.approx({(2,): 13 / 16, (): 3 / 16})


def test_a_parent_is_created_if_none_was_counted() -> None:
    for combination in ("random", "highest_count"):
        assessment = CDIA(error=0.1, threshold=0.3, combination=combination)
        assessment.add((0, 1), 2)
        assessment.add((2, 3), 8)
        result = assessment.frequencies()
        assert set(result) == {(2, 3), ()}  # by way of (0,) or (1,), which is rare too


def test_the_same_seed_makes_the_same_choices() -> None:
    stream = [((0, 1), 1), ((0,), 1), ((1,), 1), ((2,), 9)] * 40

    def results(seed: int) -> dict:
        assessment = CDIA(0.1, 0.15, "random", seed)
        feed(assessment, stream)
        return assessment.frequencies()

    assert results(5) == results(5)
    assert len({str(results(seed)) for seed in range(10)}) > 1


def test_refuses_an_unknown_combination() -> None:
    with pytest.raises(ValueError, match="combination must be one of"):
        CDIA(combination="lowest_count")  # type: ignore[arg-type]


def test_a_frequent_pattern_is_found_although_its_first_requests_were_merged() -> None:
    # Segments of 4: after 8 requests, (1,) with one request goes to the top node.
    assessment = CDIA(error=0.25, threshold=0.3)
    assessment.add((1,))
    assessment.add((0,), 7)
    assessment.add((1,), 2)
    assert assessment.frequencies() == pytest.approx({(0,): 0.7, (1,): 0.2, (): 0.1})


def test_a_parent_created_by_a_merge_may_have_missed_requests_of_its_own() -> None:
    assessment = CDIA(error=0.25, threshold=0.3)
    assessment.add((3,), 2)
    assessment.add((0,), 10)  # (3,) goes to the top node
    assessment.add((1, 3))
    assessment.add((0,), 7)  # (1, 3) goes to (3,), which is created again
    assessment.add((3,), 6)
    assert assessment.frequencies()[3,] == pytest.approx(7 / 26)  # of 8 / 26


def test_random_combination_prefers_parents_that_were_counted() -> None:
    for seed in range(8):
        assessment = CDIA(0.01, 0.2, "random", seed)
        feed(assessment, [((0, 1), 10), ((0,), 40), ((2,), 50)])
        assert assessment.frequencies() == pytest.approx({(0,): 0.5, (2,): 0.5})
