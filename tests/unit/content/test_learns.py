"""The matrices of Content-Learns, what it chooses, and how it follows the data."""

import numpy as np
import pytest

from eddyline.attributes.gain import gain_ratio
from eddyline.content import NO_ATTRIBUTE, ContentLearns, ContentOptions, routes_by_rank
from eddyline.content.pruning import fixed_operators


def _stream(rng, rows):
    partitions = np.stack([rng.integers(0, 4, rows), rng.integers(0, 24, rows)])
    passed = rng.random(rows) < np.array([0.05, 0.9, 0.9, 0.4])[partitions[0]]
    return partitions, passed


def test_in_and_out_equal_recomputation_after_every_sample():
    rng = np.random.default_rng(1)
    content = ContentLearns(operators=2, attributes=2)
    seen_partitions, seen_passed = [], []
    for _ in range(20):
        partitions, passed = _stream(rng, int(rng.integers(1, 30)))
        content.sample(partitions, passed)
        seen_partitions.append(partitions)
        seen_passed.append(passed)
        parts, outs = np.concatenate(seen_partitions, axis=1), np.concatenate(seen_passed)
        for attribute in range(2):
            for partition in range(25):
                inside = parts[attribute] == partition
                assert content.rows_in[attribute, partition] == inside.sum()
                assert content.rows_out[attribute, partition] == (inside & outs).sum()


def test_the_attribute_that_tells_is_chosen_and_its_selectivities_set():
    rng = np.random.default_rng(2)
    content = ContentLearns(operators=2, attributes=2)
    partitions, passed = _stream(rng, 400)
    content.sample(partitions, passed)
    into, out = content.rows_in.copy(), content.rows_out.copy()
    assert content.conclude() == 0
    assert content.classifier.tolist() == [NO_ATTRIBUTE, NO_ATTRIBUTE]  # only proposed
    expected = (out[0][:4] + passed.mean()) / (into[0][:4] + 1)
    assert content.detailed[0, 0, :4].tolist() == pytest.approx(expected.tolist())
    assert content.detailed[0, 0, 10] == pytest.approx(passed.mean())  # no rows: the overall value
    assert content.gain_ratios[0, 0] < gain_ratio(into[0], out[0])  # chance is taken off


def test_no_attribute_is_chosen_where_none_tells():
    rng = np.random.default_rng(3)
    chosen = []
    for _ in range(200):
        content = ContentLearns(operators=1, attributes=8)
        content.sample(rng.integers(0, 24, (8, 150)), rng.random(150) < rng.uniform(0.1, 0.9))
        chosen.append(content.conclude())
    assert np.mean(np.array(chosen) != NO_ATTRIBUTE) < 0.05


def test_an_attribute_that_tells_nothing_is_not_chosen_whatever_the_threshold():
    content = ContentLearns(1, 1, ContentOptions(gain_ratio_min=0.0))
    partitions = np.array([[0, 1] * 200])
    content.sample(partitions, np.repeat([True, False], 200))  # alike in both partitions
    assert content.conclude() == NO_ATTRIBUTE


def test_pruned_attributes_are_not_chosen():
    rng = np.random.default_rng(4)
    content = ContentLearns(operators=1, attributes=2)
    content.pruned_attributes[0] = True
    content.sample(*_stream(rng, 400))
    assert content.conclude() == NO_ATTRIBUTE


def test_running_selectivities_equal_the_recurrence_row_by_row():
    content = ContentLearns(1, 1, ContentOptions.paper())
    overall, detailed = 0.5, np.full(25, 0.5)
    rng = np.random.default_rng(5)
    for _ in range(40):
        partition = rng.integers(0, 3, 1)
        passed = rng.random(1) < 0.3
        content.observe(0, len(passed), np.count_nonzero(passed))
        content.observe_pair(0, 0, passed, partition)
        overall = 0.95 * overall + 0.05 * passed[0]
        detailed[partition[0]] = 0.95 * detailed[partition[0]] + 0.05 * passed[0]
    assert content.overall[0] == pytest.approx(overall)
    assert content.detailed[0, 0].tolist() == pytest.approx(detailed.tolist())


def test_a_selectivity_is_a_mean_while_it_rests_on_few_rows():
    content = ContentLearns(1, 1)
    content.sample(np.repeat([[0, 1]], 100, axis=1), np.arange(200) < 50)
    assert content.conclude() == 0
    content.observe_pair(0, 0, np.arange(101) < 40, np.zeros(101, dtype=np.int64))
    # 50 of 100 rows passed, one more counts with the overall selectivity of a quarter, then 40.
    assert content.detailed[0, 0, 0] == pytest.approx(90.25 / 202)
    before = content.detailed[0, 0, 1]
    content.observe_pair(0, 0, np.zeros(5, dtype=bool), np.zeros(5, dtype=np.int64))
    assert content.detailed[0, 0, 1] == before  # no rows of this partition


def test_never_less_adaptive_than_source_based_routing():
    """Where a correlation ends, all detailed selectivities converge to the overall one."""
    content = ContentLearns(1, 1)
    content.use(0, 0)
    content.detailed[0, 0, :4] = [0.0, 1.0, 0.0, 1.0]
    rng = np.random.default_rng(6)
    for _ in range(50):
        passed = rng.random(400) < 0.6
        content.observe(0, len(passed), np.count_nonzero(passed))
        content.observe_pair(0, 0, passed, rng.integers(0, 4, 400))
    assert np.abs(content.detailed[0, 0, :4] - content.overall[0]).max() < 0.15


def test_round_robin_leaves_out_operators_whose_place_is_plain():
    content = ContentLearns(operators=4, attributes=1)
    content.overall[:] = [0.5, 0.5, 0.5, 0.5]
    turns = []
    for _ in range(6):
        turn = content.next_operator(np.array([1.0, 500.0, 1.0, 1.0]))
        content.begin(turn)
        turns.append(turn)
    assert turns == [2, 3, 0, 2, 3, 0]
    assert fixed_operators(np.array([0.5, 0.5]), np.array([1.0, 500.0])) == [0, 1]


def test_rows_are_routed_by_their_own_selectivities():
    selectivity = np.array([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5], [0.9, 0.1, 0.5]])
    numbers, routes = routes_by_rank(selectivity, np.ones(3))
    assert [routes[n] for n in numbers] == [(1, 2, 0), (0, 2, 1), (1, 2, 0)]
    assert len(routes) == 2


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="profile_probability"):
        ContentOptions(profile_probability=0.0)
    with pytest.raises(ValueError, match="sample_rows"):
        ContentOptions(sample_rows=1)
    with pytest.raises(ValueError, match="gain_ratio_min"):
        ContentOptions(gain_ratio_min=-0.1)
    with pytest.raises(ValueError, match="cut_by"):
        ContentOptions(cut_by="value")


def test_a_reconsidered_attribute_starts_from_zero_and_can_be_chosen():
    rng = np.random.default_rng(8)
    content = ContentLearns(operators=2, attributes=2)
    content.sample(*_stream(rng, 400))
    content.begin(1)
    content.pruned_attributes[0] = True
    content.reconsider(0)
    content.begin(0)  # the counts of its last turn
    assert content.rows_in[0].sum() == 0
    assert content.rows_in[1].sum() == 400
    content.sample(*_stream(rng, 400))
    assert content.conclude() == 0


def test_counts_that_are_not_kept_start_from_zero():
    rng = np.random.default_rng(8)
    content = ContentLearns(2, 2, ContentOptions(keeps_counts=False))
    content.sample(*_stream(rng, 400))
    for operator in (1, 0):
        content.begin(operator)
        assert not content.rows_in.any()
        assert not content.rows_out.any()


def test_other_partitions_take_over_what_was_known_and_counts_start_again():
    content = ContentLearns(1, 1, ContentOptions(partitions=2, values_max=0))
    content.sample(np.array([[0, 1, 2]]), np.array([True, False, True]))
    content.overall[0] = 0.5
    content.detailed[0, 0] = [0.1, 0.9, 0.7]
    content.revise(0, np.array([1, 2, 2]))
    assert content.detailed[0, 0].tolist() == [0.9, 0.5, 0.7]  # moved, new, NULL as before
    assert not content.rows_in.any()
    assert not content.rows_out.any()


def test_rows_seen_add_to_the_weight_of_a_selectivity():
    content = ContentLearns(1, 1)
    content.sample(np.array([[0, 1] * 40]), np.array([True, False, False, False] * 20))
    content.conclude()
    for _ in range(2):
        content.observe_pair(0, 0, np.arange(41) < 10, np.zeros(41, dtype=np.int64))
    assert content.detailed[0, 0, 0] == pytest.approx(40.25 / 123)


def test_rows_that_differ_by_more_than_chance_replace_what_was_expected():
    content = ContentLearns(1, 1)
    content.use(0, 0)
    content.overall[0] = content.detailed[0, 0, 3] = 0.05
    passed, partitions = np.arange(100) < 90, np.full(100, 3)
    content.observe_pair(0, 0, passed, partitions)
    content.observe(0, 100, 90, is_usual=False)  # a detour: other rows reach the operator
    assert content.detailed[0, 0, 3] == pytest.approx(0.9)
    assert content.overall[0] == pytest.approx(0.05 + (1 - 0.998**100) * 0.85)
    content.observe(0, len(passed), np.count_nonzero(passed))
    assert content.overall[0] == pytest.approx(0.9)
    content.observe_pair(0, 0, np.arange(100) < 80, partitions)
    assert content.detailed[0, 0, 3] == pytest.approx(0.85)  # a mean again, of 200 rows


def test_an_operator_that_drops_hardly_anything_has_a_plain_place():
    assert fixed_operators(np.array([0.5, 0.6, 0.999]), np.ones(3)) == [2]


def test_rows_whose_selectivities_differ_by_noise_share_a_route():
    noisy = np.array([[0.50, 0.51], [0.51, 0.50]])
    assert len(routes_by_rank(noisy, np.ones(2))[1]) == 2
    assert len(routes_by_rank(noisy, np.ones(2), grid=0.05)[1]) == 1
    numbers, routes = routes_by_rank(np.array([[0.9, 0.4]]), np.array([1.0, 2.0]), grid=0.05)
    assert routes[numbers[0]] == (1, 0)


def test_the_papers_way_of_learning():
    paper = ContentOptions.paper()
    assert (paper.profile_probability, paper.sample_rows, paper.partitions) == (0.06, 150, 24)
    assert paper.memory == 0.95
    assert (paper.gain_ratio_min, paper.cut_by, paper.values_max) == (0.05, "width", 0)
    assert paper.profile_budget is None
    assert paper.stops_before_profiling
    assert not (paper.beyond_chance)
    assert not (paper.keeps_counts)
    assert not (paper.counts_all_rows)
    assert not (paper.first_look_rows)
