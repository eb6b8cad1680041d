"""What index tuning relies on, checked for every method of assessment."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from eddyline.index.assessment import ASSESSMENTS, CDIA, CSRIA, DIA, SRIA, Assessment
from eddyline.index.index import Pattern
from tests.unit.index.streams import Batch, bounds, feed, streams

METHODS: dict[str, Callable[[], Assessment]] = {
    **ASSESSMENTS,
    "CDIA random": partial(CDIA, combination="random", seed=3),
}
every_method = pytest.mark.parametrize("make", METHODS.values(), ids=METHODS.keys())
compact = pytest.mark.parametrize(
    "make",
    [CSRIA, CDIA, partial(CDIA, combination="random")],
    ids=["CSRIA", "CDIA", "CDIA random"],
)


def all_patterns(columns: int) -> list[Pattern]:
    return [p for k in range(1, columns + 1) for p in combinations(range(columns), k)]


def test_all_methods_are_registered_by_their_names() -> None:
    assert ASSESSMENTS == {"SRIA": SRIA, "CSRIA": CSRIA, "DIA": DIA, "CDIA": CDIA}


@every_method
@given(stream=streams())
@settings(max_examples=40)
def test_frequencies_are_shares_of_all_requests(
    make: Callable[[], Assessment], stream: list[Batch]
) -> None:
    assessment = make()
    feed(assessment, stream)
    assert assessment.requests == sum(requests for _, requests in stream)
    result = assessment.frequencies()
    assert all(0 <= share <= 1 for share in result.values())
    assert sum(result.values()) <= 1 + 1e-9
    assert result == assessment.frequencies(), "asking twice must not change the result"


@every_method
def test_begins_empty_and_again_after_a_reset(make: Callable[[], Assessment]) -> None:
    assessment = make()
    assert (assessment.requests, assessment.entries, assessment.frequencies()) == (0, 0, {})
    assessment.add((0, 1), 500)
    assert assessment.frequencies() == {(0, 1): 1.0}
    assessment.reset()
    assert (assessment.requests, assessment.entries, assessment.frequencies()) == (0, 0, {})
    assessment.add((2,), 10)
    assert assessment.frequencies() == {(2,): 1.0}


@every_method
def test_patterns_may_appear_at_any_time(make: Callable[[], Assessment]) -> None:
    assessment = make()
    assessment.add((0,), 1000)
    assessment.add((1, 7), 500)
    assessment.add((), 500)
    result = assessment.frequencies()
    assert result[0,] == 0.5
    assert result[1, 7] == pytest.approx(0.25)


@every_method
def test_no_requests_change_nothing_and_fewer_are_refused(
    make: Callable[[], Assessment],
) -> None:
    assessment = make()
    assessment.add((0,), 0)
    assert (assessment.requests, assessment.entries) == (0, 0)
    with pytest.raises(ValueError, match="requests must be 0 or more"):
        assessment.add((0,), -1)


@every_method
@given(stream=streams())
@settings(max_examples=40)
def test_a_batch_finds_what_single_requests_find(
    make: Callable[[], Assessment], stream: list[Batch]
) -> None:
    batched, single = make(), make()
    truth = feed(batched, stream)
    feed(single, [(pattern, 1) for pattern, requests in stream for _ in range(requests)])
    assert batched.requests == single.requests
    for assessment in (batched, single):
        result = assessment.frequencies()
        for pattern, share in truth.items():
            if share >= 0.1:
                assert result[pattern] >= share - 0.05 - 1e-9


@every_method
@given(stream=streams())
@settings(max_examples=20)
def test_a_pickled_assessment_goes_on_as_this_one(
    make: Callable[[], Assessment], stream: list[Batch]
) -> None:
    assessment = make()
    feed(assessment, stream)
    sent = pickle.loads(pickle.dumps(assessment))
    feed(assessment, stream[::-1])
    feed(sent, stream[::-1])
    assert sent.frequencies() == assessment.frequencies()
    assert sent.entries == assessment.entries


@compact
@pytest.mark.parametrize("requests", [1, 7, 45])
def test_entries_stay_within_the_memory_bound(
    make: Callable[..., Assessment], requests: int
) -> None:
    columns, error, batches = 11, 0.1, 6000
    assessment = make(error=error, threshold=0.2)
    rng = np.random.default_rng(0)
    every = all_patterns(columns)
    most = 0
    for drawn in rng.integers(len(every), size=batches):
        assessment.add(every[drawn], requests)
        most = max(most, assessment.entries)
    bound = math.log(error * requests * batches) / error
    if assessment.name == "CDIA":
        bound *= columns
    assert most <= bound + 1 / error < len(every)


@compact
@given(limits=bounds())
@settings(max_examples=5)
def test_refuses_bounds_that_make_no_sense(
    make: Callable[..., Assessment], limits: tuple[float, float]
) -> None:
    error, threshold = limits
    make(error=error, threshold=threshold)
    for wrong in (0, -0.1, threshold, 1.5):
        with pytest.raises(ValueError, match="error must lie between 0 and the threshold"):
            make(error=wrong, threshold=threshold)
    for wrong in (0, -1, 1.1):
        with pytest.raises(ValueError, match="threshold must lie above 0"):
            make(error=error, threshold=wrong)
