"""Equations 1 to 5 of the paper on content-based routing, against values worked out by hand."""

import math

import numpy as np
import pytest

from eddyline.attributes.gain import (
    chance_gain,
    entropy,
    gain_ratio,
    information_gain,
    split_information,
)

# Table 1: three values of A, equally frequent, and the selectivities of three filters.
TABLE_1 = {"O1": [32, 31, 27], "O2": [10, 20, 90], "O3": [55, 65, 60]}


def test_entropy_of_a_third():
    assert entropy(1 / 3) == pytest.approx(math.log2(3) - 2 / 3)


def test_information_gain_by_hand():
    # 8 rows of which 4 pass; all 2 of the first part, 2 of 6 in the second.
    by_hand = 1.0 - (2 / 8 * 0.0 + 6 / 8 * (math.log2(3) - 2 / 3))
    assert information_gain([2, 6], [2, 2]) == pytest.approx(by_hand)


def test_split_information_by_hand():
    assert split_information([2, 6]) == pytest.approx(0.25 * 2 + 0.75 * math.log2(4 / 3))


def test_gain_ratio_is_the_quotient():
    assert gain_ratio([2, 6], [2, 2]) == pytest.approx(
        information_gain([2, 6], [2, 2]) / split_information([2, 6])
    )


def test_only_the_second_filter_of_table_1_depends_on_the_attribute():
    ratios = {name: float(gain_ratio([100] * 3, out)) for name, out in TABLE_1.items()}
    assert ratios["O2"] > 20 * max(ratios["O1"], ratios["O3"])


def test_an_attribute_with_one_value_tells_nothing():
    assert gain_ratio([50, 0], [20, 0]) == 0.0


def test_all_attributes_are_scored_in_one_call():
    into = np.array([[2, 6], [4, 4]])
    out = np.array([[2, 2], [2, 2]])
    assert gain_ratio(into, out).tolist() == pytest.approx(
        [float(gain_ratio(i, o)) for i, o in zip(into, out, strict=True)]
    )


def test_the_gain_of_an_uninformative_attribute_is_about_chance():
    rng = np.random.default_rng(0)
    gains, expected = [], []
    for _ in range(300):
        part = rng.integers(0, 24, 150)
        passed = rng.random(150) < 0.4
        into = np.bincount(part, minlength=24)
        gains.append(float(information_gain(into, np.bincount(part[passed], minlength=24))))
        expected.append(float(chance_gain(into)))
    assert np.mean(gains) == pytest.approx(np.mean(expected), rel=0.25)
