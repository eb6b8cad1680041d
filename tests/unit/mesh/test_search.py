"""Query Mesh: condensing, cost model, searches and starts, against counting and brute force."""

import itertools
import time

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import EddylineError
from eddyline.mesh import MeshOptions, TrainingSet, find_mesh
from eddyline.mesh.annealing import simulated_annealing
from eddyline.mesh.condense import condense
from eddyline.mesh.cost import MeshProblem, Overheads
from eddyline.mesh.iterative import iterative_improvement
from eddyline.mesh.mesh import with_uncertainty
from eddyline.mesh.neighbours import random_neighbour
from eddyline.mesh.optimal import optimal, partitions
from eddyline.mesh.routes import ROUTE_FINDERS
from eddyline.mesh.starts import STARTS, continuing
from eddyline.mesh.stop import Stop
from eddyline.ordering.static import ordering_cost


def make_training(seed, rows=300, kinds=4, operators=4):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, kinds, rows)
    selectivity = rng.uniform(0.05, 0.95, (kinds, operators))
    drops = rng.random((rows, operators)) >= selectivity[kind]
    columns = {
        "kind": pa.array([f"k{k}" for k in kind]),
        "noise": pa.array(rng.random(rows)),
    }
    return TrainingSet(columns, drops, rng.uniform(1, 10, operators))


def make_problem(seed, tuples=6, **options):
    training = make_training(seed, kinds=tuples)
    kinds = np.array(training.columns["kind"].to_pylist())
    cells = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]
    return MeshProblem(training, cells, **options)


# --- training set ----------------------------------------------------------------------------


def test_condensed_tuples_divide_the_sample_and_keep_its_weight():
    training = make_training(0)
    for tuples_max in (2, 5, 10):
        cells = condense(training, tuples_max, beyond_chance=False).tuples
        assert len(cells) <= tuples_max
        assert sorted(np.concatenate(cells).tolist()) == list(range(training.rows))


def test_condensing_finds_the_classes_and_nothing_else():
    condensed = condense(make_training(1, rows=1_000), 16)
    cells = condensed.tuples
    assert condensed.attributes == ["kind"]
    kinds = np.array(make_training(1, rows=1_000).columns["kind"].to_pylist())
    assert all(len(set(kinds[cell])) == 1 for cell in cells)
    assert len(cells) == 4


def test_rows_that_do_not_differ_are_one_tuple():
    rng = np.random.default_rng(0)
    drops = rng.random((500, 3)) < 0.5
    columns = {f"c{n}": pa.array(rng.random(500)) for n in range(5)}
    assert len(condense(TrainingSet(columns, drops, [1.0, 1.0, 1.0]), 16).tuples) == 1


# --- cost model ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_cost_of_a_mesh_is_what_counting_evaluations_gives(seed):
    problem = make_problem(seed, overheads=Overheads(test_us=0.3, route_us=0.2))
    training = problem.training
    for partition in ((0,) * 6, (0, 1, 0, 1, 2, 2), tuple(range(6))):
        solution = problem.evaluate(partition)
        labels = solution.tree.classify(training.columns)
        depth_of = {}
        for label, path in solution.tree.paths():
            depth_of.setdefault(label, []).append(len(path))
        counted = 0.0
        for row in range(training.rows):
            for operator in solution.routes[labels[row]]:
                counted += training.cost_us[operator]
                if training.drops[row, operator]:
                    break
        tests = sum(_tests_of(solution.tree.root, training, row) for row in range(training.rows))
        expected = (
            counted / training.rows + 0.3 * tests / training.rows + 0.2 * len(solution.tree.labels)
        )
        assert solution.cost_us == pytest.approx(expected)


def _tests_of(node, training, row):
    if node.split is None:
        return 0
    column = training.columns[node.split.attribute].slice(row, 1)
    branch = node.left if node.split.goes_left(column)[0] else node.right
    return 1 + _tests_of(branch, training, row)


def test_groups_with_the_same_route_are_one_class():
    training = make_training(0, kinds=1)
    problem = MeshProblem(training, [np.arange(150), np.arange(150, 300)])
    assert problem.route_of((0,))[0] == problem.route_of((1,))[0]
    assert len(problem.evaluate((0, 1)).routes) == 1


@pytest.mark.parametrize("finder", ROUTE_FINDERS)
def test_every_way_to_find_a_route_names_each_operator_once(finder):
    training = make_training(3)
    route = ROUTE_FINDERS[finder](training.drops, training.cost_us)
    assert sorted(route) == [0, 1, 2, 3]
    best = min(
        ordering_cost(order, training.drops, training.cost_us)
        for order in itertools.permutations(range(4))
    )
    cost = ordering_cost(route, training.drops, training.cost_us)
    assert cost >= best - 1e-9
    if finder == "dynamic":
        assert cost == pytest.approx(best)


# --- searches --------------------------------------------------------------------------------


def test_the_number_of_partitions_is_a_bell_number():
    assert [sum(1 for _ in partitions(n)) for n in range(1, 8)] == [1, 2, 5, 15, 52, 203, 877]


@pytest.mark.parametrize("seed", range(16))
def test_opt_qm_equals_brute_force(seed):
    problem = make_problem(seed, tuples=5)
    brute = min(problem.evaluate(partition).cost_us for partition in partitions(5))
    assert optimal(problem).cost_us == pytest.approx(brute)


@pytest.mark.parametrize("seed", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("start", STARTS)
def test_ii_and_sa_come_close_to_the_optimum_from_every_start(seed, start):
    problem = make_problem(seed, tuples=7)
    best = optimal(problem).cost_us
    rng = np.random.default_rng(seed)
    ii = iterative_improvement(problem, STARTS[start], Stop(3, 3), rng)
    sa = simulated_annealing(problem, STARTS[start], Stop(48, 48), rng)
    assert ii.cost_us <= 1.02 * best
    assert sa.cost_us <= 1.02 * best


@pytest.mark.parametrize("start", STARTS)
def test_start_solutions_are_partitions(start):
    problem = make_problem(2)
    partition = STARTS[start](problem, np.random.default_rng(0))
    assert len(partition) == len(problem.tuples)
    groups = {"extreme-1": 1, "extreme-n": 6}
    assert len(set(partition)) == groups.get(start, len(set(partition)))


def test_neighbours_are_one_move_away():
    rng = np.random.default_rng(0)
    for _ in range(300):
        partition = tuple(rng.integers(0, 3, 6).tolist())
        after = random_neighbour(partition, rng)
        pairs = itertools.combinations(range(6), 2)
        changed = [
            (a, b) for a, b in pairs if (partition[a] == partition[b]) != (after[a] == after[b])
        ]
        assert changed
        assert len(after) == 6


def test_a_search_stops_when_time_is_up():
    stop = Stop(iterations_max=10**9, plateau_max=10**9, seconds_max=0.05)
    iterative_improvement(make_problem(0), STARTS["random"], stop, np.random.default_rng(0))
    assert stop.reason == "time"


def test_opt_qm_refuses_large_training_sets():
    with pytest.raises(EddylineError, match="13 are too many"):
        optimal(make_problem(0, tuples=13))


# --- the whole way ---------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["ii", "sa", "opt"])
def test_classes_are_found_and_pay_on_fresh_rows(search):
    training = make_training(5, rows=600)
    found = find_mesh(training, MeshOptions(search=search, tuples_max=8), seed=0)
    assert found.mesh is not None
    assert found.mesh.tree.attributes == ["kind"]
    assert found.mesh.cost_us < found.mesh.single_us
    assert found.explored > 0


@pytest.mark.parametrize("seed", range(10))
def test_no_classes_where_rows_do_not_differ(seed):
    rng = np.random.default_rng(seed)
    drops = rng.random((600, 4)) < [0.9, 0.5, 0.3, 0.1]
    columns = {f"c{n}": pa.array(rng.integers(0, 10, 600)) for n in range(6)}
    assert find_mesh(TrainingSet(columns, drops, [1.0] * 4), seed=seed).mesh is None


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_sample_that_is_too_small_gives_no_mesh(rows):
    training = make_training(0).subset(np.arange(rows))
    assert find_mesh(training).mesh is None


def test_bad_options_are_refused():
    with pytest.raises(EddylineError, match="it must be above 0, or None for no limit"):
        MeshOptions(seconds_max=0.0)
    with pytest.raises(EddylineError, match="search is 'best'"):
        MeshOptions(search="best")
    with pytest.raises(EddylineError, match="at most 12 training tuples"):
        MeshOptions(search="opt")


def test_uncertain_steps_keep_every_operator_once():
    training = make_training(8)
    for order in itertools.permutations(range(4)):
        route = with_uncertainty(order, training.drops, training.cost_us)
        flat = [n for step in route for n in ((step,) if isinstance(step, int) else step)]
        assert flat == list(order)


def test_the_order_is_certain_where_too_few_rows_get_that_far():
    none_drop = np.zeros((16, 2), dtype=bool)
    assert with_uncertainty((1, 0), none_drop, np.ones(2)) == ((1, 0),)
    assert with_uncertainty((1, 0), none_drop[1:], np.ones(2)) == (1, 0)


def test_the_time_of_a_search_that_finds_nothing_is_told():
    began = time.perf_counter()
    found = find_mesh(make_training(0, kinds=1), seed=0)
    assert found.mesh is None
    assert 0 < found.seconds <= time.perf_counter() - began


def test_rows_are_alike_where_the_classifier_may_test_nothing():
    training = make_training(0)
    problem = MeshProblem(training, [np.arange(training.rows)], attributes=[])
    assert problem.alike().tolist() == [0] * training.rows


def test_a_sample_without_rows_has_no_training_tuples():
    condensed = condense(make_training(0).subset(np.arange(0)), 16)
    assert (condensed.tuples, condensed.attributes) == ([], [])


def test_a_search_can_go_on_from_the_mesh_in_use():
    training = make_training(5, rows=600)
    mesh = find_mesh(training, seed=0).mesh
    cells = condense(training, 16)
    problem = MeshProblem(training, cells.tuples, attributes=cells.attributes)
    start = continuing(mesh.classify(training.columns))
    partition = start(problem, np.random.default_rng(0))
    assert len(set(partition)) == len(mesh.classes)
    assert problem.evaluate(partition).cost_us == pytest.approx(mesh.cost_us)
    again = find_mesh(training, seed=0, current=mesh)
    assert again.mesh.cost_us <= mesh.cost_us + 1e-9


def test_progress_is_told():
    told = []
    find_mesh(make_training(5, rows=600), seed=0, progress=lambda n, us: told.append((n, us)))
    assert told[0][0] == 1
    assert all(us > 0 for _, us in told)
