"""A split must gain more than the best split of an attribute that tells nothing would."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from eddyline.mesh.cut import best_cut, variance_impurity
from eddyline.mesh.training import TrainingSet


@pytest.mark.parametrize(
    ("values", "others", "expected"),
    [
        # The best of b cuts of an ordered attribute: 2 ln b, and so for the choice of attribute.
        ([0.5, 1.5], 0, 2 * math.log(2) + 2 * math.log(2) + 4),
        (np.arange(10) + 0.5, 0, 2 * math.log(10) + 2 * math.log(2) + 4),
        (np.arange(10) + 0.5, 4, 2 * math.log(10) + 2 * math.log(5) + 4),
        # The best division of v values: 2/pi of the v - 1 degrees of freedom between them.
        (list("ab"), 0, 2 / math.pi + 2 * math.log(2) + 4),
        (list("abcdefghij"), 4, 9 * 2 / math.pi + 2 * math.log(5) + 4),
    ],
)
def test_a_split_gains_more_than_chance_gives_to_so_many_values_and_attributes(
    values, others, expected
) -> None:
    rows = 200
    column = pa.array([values[n % len(values)] for n in range(rows)])
    answers = np.array([[n % len(values) == 0] for n in range(rows)])
    columns = {"own": column} | {f"same {n}": pa.array([0] * rows) for n in range(others)}
    training = TrainingSet(columns, answers, [1.0])
    assert len(training.attributes) == 1 + others
    given = (training.attributes, np.arange(rows), answers.astype(float), variance_impurity, 1)
    plain = best_cut(*given)
    assert plain is not None
    assert best_cut(*given, chance_unit=0.99 * plain.gain / expected) is not None
    assert best_cut(*given, chance_unit=1.01 * plain.gain / expected) is None


def test_only_values_that_occur_among_the_rows_count() -> None:
    """A node of the tree sees some of the rows; values that the others have cost it nothing."""
    values = [0.5, 1.5] * 50 + [2.5 + n % 50 for n in range(100)]
    answers = np.array([[n % 2 == 0] for n in range(200)])
    training = TrainingSet({"own": pa.array(values)}, answers, [1.0])
    given = (training.attributes, np.arange(100), answers.astype(float), variance_impurity, 1)
    plain = best_cut(*given)
    assert plain is not None
    expected = 4 * math.log(2) + 4
    assert best_cut(*given, chance_unit=0.99 * plain.gain / expected) is not None
    assert best_cut(*given, chance_unit=1.01 * plain.gain / expected) is None
