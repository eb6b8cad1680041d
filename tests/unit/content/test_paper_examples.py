"""Examples 1.1, 1.2 and 3.1 of the paper on content-based routing."""

import numpy as np
import pytest

from eddyline.attributes.gain import gain_ratio
from eddyline.content import NO_ATTRIBUTE, ContentLearns, ContentOptions, routes_by_rank

COSTS_EQUAL = np.ones(3)


def learnt(selectivity, options, rows=30_000, seed=71):
    """Profile every operator on rows of equally frequent classes; use what is found."""
    rng = np.random.default_rng(seed)
    classes, operators = selectivity.shape
    kind = rng.integers(0, classes, rows)
    passed = rng.random((rows, operators)) < selectivity[kind]
    content = ContentLearns(operators, 1, options)
    for operator in range(operators):
        content.begin(operator)
        content.sample(kind[None, :], passed[:, operator])
        content.use(operator, content.conclude())
    return content


def routes(content, classes, cost_us):
    numbers, found = routes_by_rank(content.selectivities(np.arange(classes)[None, :]), cost_us)
    return [found[number] for number in numbers]


@pytest.mark.parametrize("options", [ContentOptions(), ContentOptions.paper()])
def test_example_1_1_attack_packets_are_looked_up_first(options):
    """c3 > c1 > c2; packets of attackers pass both searches, and fail the lookup of the address."""
    cost_us = np.array([2.0, 1.0, 3.0])
    others, attackers = [0.4, 0.2, 0.6], [0.02, 0.95, 0.97]
    content = learnt(np.array([others, attackers]), options)
    assert routes(content, 2, cost_us) == [(1, 0, 2), (0, 1, 2)]


@pytest.mark.parametrize("options", [ContentOptions(), ContentOptions.paper()])
def test_example_1_2_sensors_at_windows_are_asked_for_light_first(options):
    at_window, inside = [0.2, 0.8], [0.9, 0.3]  # light below 1,000 lux, above 20 degrees
    content = learnt(np.array([at_window, inside]), options)
    assert routes(content, 2, np.ones(2)) == [(0, 1), (1, 0)]


class TestExample31:
    TABLE = np.array([[0.32, 0.10, 0.55], [0.31, 0.20, 0.65], [0.27, 0.90, 0.60]])

    def test_by_overall_selectivities_one_order_is_best(self):
        content = learnt(self.TABLE, ContentOptions())
        content.classifier[:] = NO_ATTRIBUTE
        assert content.overall.tolist() == pytest.approx([0.3, 0.4, 0.6], abs=0.02)
        assert set(routes(content, 3, COSTS_EQUAL)) == {(0, 1, 2)}

    @pytest.mark.parametrize("options", [ContentOptions(), ContentOptions.paper()])
    def test_by_content_a_and_b_go_to_the_second_filter_first_and_c_last(self, options):
        content = learnt(self.TABLE, options)
        assert content.classifier[1] == 0
        assert routes(content, 3, COSTS_EQUAL) == [(1, 0, 2), (1, 0, 2), (0, 2, 1)]

    def test_only_the_second_filter_has_a_classifier_attribute(self):
        """Definition 3.1 with the gain ratios of equation 5."""
        content = learnt(self.TABLE, ContentOptions.paper())
        assert content.classifier.tolist() == [NO_ATTRIBUTE, 0, NO_ATTRIBUTE]
        exact = [float(gain_ratio([100] * 3, 100 * column)) for column in self.TABLE.T]
        assert content.gain_ratios[:, 0].tolist() == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize(("gamma", "chosen"), [(0.25, 0), (0.27, NO_ATTRIBUTE)])
def test_an_attribute_is_a_classifier_only_above_gamma(gamma, chosen):
    """The second filter of table 1 has a gain ratio of 0.2635."""
    options = ContentOptions(beyond_chance=False, gain_ratio_min=gamma)
    content = ContentLearns(1, 1, options)
    kind = np.repeat([0, 1, 2], 100)
    passed = np.concatenate([np.arange(100) < out for out in (10, 20, 90)])
    content.sample(kind[None, :], passed)
    assert content.conclude() == chosen
