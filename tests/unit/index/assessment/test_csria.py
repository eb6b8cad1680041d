"""CSRIA keeps the promises of lossy counting (definition 3)."""

from __future__ import annotations

import pytest
from hypothesis import given

from eddyline.index.assessment import CSRIA
from tests.unit.index.streams import Batch, bounds, feed, feed_table_2, streams


@given(streams(), bounds())
def test_finds_the_frequent_never_overestimates_and_underestimates_by_at_most_the_error(
    stream: list[Batch], limits: tuple[float, float]
) -> None:
    error, threshold = limits
    assessment = CSRIA(error, threshold)
    truth = feed(assessment, stream)
    result = assessment.frequencies()
    assert {pattern for pattern, share in truth.items() if share >= threshold} <= set(result)
    for pattern, share in result.items():
        assert truth[pattern] - error - 1e-9 <= share <= truth[pattern] + 1e-9


@given(streams(requests_max=1), bounds())
def test_does_not_report_what_is_rarer_than_threshold_less_twice_the_error(
    stream: list[Batch], limits: tuple[float, float]
) -> None:
    error, threshold = limits
    assessment = CSRIA(error, threshold)
    truth = feed(assessment, stream)
    for pattern in assessment.frequencies():
        assert truth[pattern] >= threshold - 2 * error - 1e-9


def test_deletes_two_patterns_of_table_2() -> None:
    assessment = CSRIA(error=0.001, threshold=0.05)
    truth = feed_table_2(assessment)
    assert assessment.frequencies() == pytest.approx(
        {pattern: share for pattern, share in truth.items() if share >= 0.05}
    )


def test_drops_patterns_with_one_request_a_segment_when_the_segment_is_complete() -> None:
    assessment = CSRIA(error=0.25, threshold=0.5)
    for column in range(3):
        assessment.add((column,))
    assert assessment.entries == 3
    assessment.add((3,))
    assert assessment.entries == 0


def test_a_pattern_that_comes_late_is_reported_with_what_may_have_been_missed() -> None:
    # After 100 requests in segments of 4, up to 25 requests of (1,) may have been dropped.
    assessment = CSRIA(error=0.25, threshold=0.4)
    assessment.add((0,), 100)
    assessment.add((1,), 2)
    assert assessment.frequencies() == {(0,): 100 / 102, (1,): 2 / 102}


def test_a_batch_that_ends_inside_a_segment_does_not_count_that_segment() -> None:
    # 7 requests complete one segment of 4. (0,) has 2, more than one for each complete segment.
    assessment = CSRIA(error=0.25, threshold=0.5)
    assessment.add((0,), 2)
    assessment.add((1,), 5)
    assert assessment.frequencies() == {(0,): 2 / 7, (1,): 5 / 7}
