"""Rules of the searches, starts and options that a result alone would not show to be missing."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import EddylineError
from eddyline.mesh import (
    Mesh,
    MeshOptions,
    RowClass,
    TrainingSet,
    annealing,
    find_mesh,
    routes,
    starts,
)
from eddyline.mesh.annealing import simulated_annealing
from eddyline.mesh.cost import MeshProblem, Overheads, Solution
from eddyline.mesh.iterative import iterative_improvement
from eddyline.mesh.neighbours import random_neighbour, renumbered
from eddyline.mesh.optimal import optimal, partitions
from eddyline.mesh.routes import ROUTE_FINDERS
from eddyline.mesh.search import search_solution
from eddyline.mesh.split import Split
from eddyline.mesh.starts import STARTS
from eddyline.mesh.stop import Stop
from eddyline.mesh.tree import Node, Tree, grow_tree
from tests.unit.mesh.test_search import make_problem, make_training


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- the hold-out gate -----------------------------------------------------------------------


def make_noise(seed: int, rows: int = 48, columns: int = 40) -> TrainingSet:
    """Few rows with many columns of two values: some column always seems to tell them apart."""
    drawn = rng(seed)
    drops = drawn.random((rows, 3)) < 0.5
    attributes = {f"c{n}": pa.array(drawn.integers(0, 2, rows)) for n in range(columns)}
    return TrainingSet(attributes, drops, [10.0] * 3)


def test_a_mesh_that_suits_only_the_rows_it_was_made_from_is_refused(monkeypatch) -> None:
    from eddyline.mesh import search

    def overfitted(training: TrainingSet, *given: object) -> object:
        """Divide at the column that suits these rows best, whatever chance alone would give."""
        best: tuple[Solution, MeshProblem] | None = None
        for attribute in training.attributes:
            cells = [np.flatnonzero(attribute.codes == code) for code in (0, 1)]
            problem = MeshProblem(training, cells, attributes=[attribute.name])
            solution = problem.evaluate((0, 1))
            if best is None or solution.cost_us < best[0].cost_us:
                best = solution, problem
        assert best is not None
        return *best, Stop()

    monkeypatch.setattr(search, "search_solution", overfitted)
    seeming = refused = 0
    for seed in range(20):
        training = make_noise(seed)
        solution, problem, _ = overfitted(training)
        single_us = problem.evaluate((0, 0)).cost_us
        seeming += solution.cost_us < 0.97 * single_us
        refused += find_mesh(training, seed=seed).mesh is None
    assert seeming >= 15  # on its own rows the mesh seems to pay
    assert refused >= 18


def test_a_saving_within_the_noise_of_the_held_back_rows_is_refused() -> None:
    kinds = np.array(["a", "b"] * 60)
    certain = np.array([[True, False], [False, True]] * 60)
    training = TrainingSet({"kind": pa.array(kinds)}, certain, [5.0, 5.0])
    found = find_mesh(training, seed=0)
    assert found.mesh is not None
    assert found.saving_us - found.noise_us > 0.03 * found.single_us
    # The same rows must save more than that if more is asked for.
    asked = (found.saving_us - found.noise_us) / found.single_us
    just_less, just_more = asked - 1e-6, asked + 1e-6
    assert find_mesh(training, MeshOptions(gain_min=just_less), seed=0).mesh is not None
    assert find_mesh(training, MeshOptions(gain_min=just_more), seed=0).mesh is None


def test_tests_of_the_classifier_count_against_a_mesh() -> None:
    """A search that finds dear tests worth while on its own rows is judged with their cost."""
    training = make_training(5, rows=600)
    free = find_mesh(training, MeshOptions(overheads=Overheads(0.0, 0.0)), seed=0)
    dear = find_mesh(training, MeshOptions(overheads=Overheads(0.1, 0.0)), seed=0)
    assert free.mesh is not None
    assert free.mesh.tree.attributes == ["kind"]
    # Between one and four tests a row.
    assert 0.1 <= free.saving_us - dear.saving_us <= 0.4
    assert dear.single_us == free.single_us


# --- simulated annealing ---------------------------------------------------------------------


class Landscape:
    """A problem with two partitions: a search walks between them, uphill and downhill."""

    tuples = (np.arange(1), np.arange(1, 2))

    def __init__(self, cost_us: dict[tuple[int, ...], float]) -> None:
        self.cost_us = cost_us
        self.visited: list[tuple[int, ...]] = []

    def evaluate(self, partition: tuple[int, ...]) -> Solution:
        self.visited.append(partition)
        return Solution(partition, Tree(Node(0)), (), (), (), self.cost_us[partition])


def uphill_share(worse_us: float, moves: int = 4_000) -> float:
    """Return how often a move to the worse of two partitions is accepted at temperature 1."""
    problem = Landscape({(0, 0): 10.0, (0, 1): 10.0 + worse_us})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(annealing, "START_SHARE", 0.1)  # of 10: temperature 1
        patch.setattr(annealing, "COOLING", 1.0)
        simulated_annealing(problem, STARTS["extreme-1"], Stop(moves // 4), rng())  # type: ignore[arg-type]
    tried = accepted = 0
    for before, after in itertools.pairwise(problem.visited[1:]):
        if before == (0, 1):  # tried from (0, 0); the next is tried from where that led
            tried += 1
            accepted += after == (0, 0)
    return accepted / tried


@pytest.mark.parametrize("worse_us", [0.1, 0.7, 2.0])
def test_a_worse_mesh_is_accepted_with_the_probability_of_the_paper(worse_us: float) -> None:
    assert uphill_share(worse_us) == pytest.approx(math.exp(-worse_us), abs=0.04)


def test_a_better_mesh_is_always_accepted_and_the_best_returned() -> None:
    problem = Landscape({(0, 0): 10.0, (0, 1): 9.0})
    found = simulated_annealing(problem, STARTS["extreme-1"], Stop(5), rng())  # type: ignore[arg-type]
    assert found.partition == (0, 1)
    assert problem.visited[:3] == [(0, 0), (0, 1), (0, 0)]


def test_annealing_freezes() -> None:
    stop = Stop(iterations_max=10**6)
    simulated_annealing(make_problem(0, tuples=2), STARTS["extreme-1"], stop, rng())
    assert stop.reason == ""
    assert 40 < stop.iterations < 44  # 0.8 ** 42 is less than 1e-4


# --- moves -----------------------------------------------------------------------------------


def moves_of(partition: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Return every partition that one merge, split or move of a tuple leads to."""
    found = set()
    groups = set(partition)
    for one, other in itertools.combinations(groups, 2):
        found.add(renumbered([one if group == other else group for group in partition]))
    for number, own in enumerate(partition):
        for group in groups - {own}:
            moved = list(partition)
            moved[number] = group
            found.add(renumbered(moved))
    for group in groups:
        members = [number for number, own in enumerate(partition) if own == group]
        for size in range(1, len(members)):
            for taken in itertools.combinations(members, size):
                divided = list(partition)
                for number in taken:
                    divided[number] = -1
                found.add(renumbered(divided))
    return found - {renumbered(list(partition))}


@pytest.mark.parametrize("partition", [(0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 1, 2), (0, 1, 2, 3)])
def test_neighbours_are_exactly_one_merge_split_or_move_away(partition: tuple[int, ...]) -> None:
    drawn = {random_neighbour(partition, rng(seed)) for seed in range(600)}
    assert drawn - {partition} == moves_of(partition)


def test_a_single_tuple_has_no_neighbour() -> None:
    assert random_neighbour((0,), rng()) == (0,)


# --- starts ----------------------------------------------------------------------------------


def test_random_pick_is_the_cheapest_of_ten(monkeypatch) -> None:
    problem = make_problem(4)
    picked: list[tuple[int, ...]] = []
    draw = starts.random_partition

    def noted(tuples: int, drawn: np.random.Generator) -> tuple[int, ...]:
        picked.append(draw(tuples, drawn))
        return picked[-1]

    monkeypatch.setattr(starts, "random_partition", noted)
    chosen = STARTS["random"](problem, rng(3))
    costs = [problem.evaluate(partition).cost_us for partition in picked]
    assert len(picked) == 10
    assert len(set(costs)) > 1
    assert problem.evaluate(chosen).cost_us == min(costs)


def test_random_partitions_have_one_group_to_as_many_as_tuples() -> None:
    drawn = [starts.random_partition(4, rng(seed)) for seed in range(300)]
    assert {len(set(partition)) for partition in drawn} == {1, 2, 3, 4}


def test_a_search_from_extreme_n_begins_with_a_group_for_each_tuple() -> None:
    training = make_training(0, kinds=1)
    problem = MeshProblem(training, [np.arange(first, 300, 4) for first in range(4)])
    every = STARTS["extreme-n"](problem, rng())
    by_route = STARTS["route"](problem, rng())
    assert len(set(by_route)) < 4
    assert problem.evaluate(every).partition == (0, 1, 2, 3)
    assert problem.evaluate(by_route).partition == by_route
    # One route is one class of the mesh, however many groups have it.
    assert problem.evaluate(every).cost_us == problem.evaluate(by_route).cost_us


def test_extreme_n_and_route_driven_lead_to_different_meshes() -> None:
    differ = 0
    for seed in range(12):
        found = [
            iterative_improvement(make_problem(seed, tuples=8), STARTS[start], Stop(1), rng(seed))
            for start in ("route", "extreme-n")
        ]
        differ += found[0].cost_us != found[1].cost_us
    assert differ > 0


def content_groups(values: list[object], tuple_rows: int = 10) -> tuple[int, ...]:
    """Return the content-driven start of training tuples that have one value each."""
    column = pa.array([value for value in values for _ in range(tuple_rows)])
    drops = np.zeros((len(column), 2), dtype=bool)
    cells = [np.arange(n * tuple_rows, (n + 1) * tuple_rows) for n in range(len(values))]
    problem = MeshProblem(TrainingSet({"value": column}, drops, [1.0, 1.0]), cells)
    return STARTS["content"](problem, rng())


def test_texts_are_alike_if_they_are_equal_not_if_they_appear_together() -> None:
    names = [f"k{n}" for n in range(12)]
    assert content_groups(names) == tuple(range(12))
    assert content_groups(["a", "b", "a", "c", "b"]) == (0, 1, 0, 2, 1)


def test_whole_numbers_are_alike_if_they_are_near_whatever_comes_first() -> None:
    assert content_groups([1, 2, 11, 12]) == (0, 1, 2, 3)  # four values: a third of the domain each
    numbers = list(range(12))
    assert content_groups(numbers) == (0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3)
    backwards = content_groups(numbers[::-1])
    assert len(set(backwards)) == 4
    shuffled = [0, 11, 1, 10, 2, 9]
    groups = content_groups([*shuffled, 3, 4, 5, 6, 7, 8])[:6]
    assert groups == (0, 1, 0, 1, 0, 1)


def test_numbers_are_alike_within_a_quarter_of_their_domain() -> None:
    groups = content_groups([n / 40 for n in range(40)])
    assert len(set(groups)) == 4


def test_content_counts_only_where_the_classifier_may_look() -> None:
    column = {"kind": pa.array(["a"] * 40), "noise": pa.array([f"n{n}" for n in range(40)])}
    training = TrainingSet(column, np.zeros((40, 2), dtype=bool), [1.0, 1.0])
    cells = [np.arange(20), np.arange(20, 40)]
    assert STARTS["content"](MeshProblem(training, cells), rng()) == (0, 1)
    narrowed = MeshProblem(training, cells, attributes=["kind"])
    assert STARTS["content"](narrowed, rng()) == (0, 0)


# --- stop conditions -------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["ii", "sa"])
def test_a_search_stops_on_a_plateau(search: str) -> None:
    training = make_training(5, rows=600)
    options = MeshOptions(
        search=search, iterations_max=1_000, plateau_max=2, seconds_max=None, tuples_max=4
    )
    *_, stop = search_solution(training, options, rng())
    assert stop.reason == "plateau"
    assert stop.iterations < 100
    assert find_mesh(training, options, seed=0).stopped == "plateau"


def test_without_a_plateau_all_iterations_are_made() -> None:
    options = MeshOptions(iterations_max=20, plateau_max=None, seconds_max=None, tuples_max=4)
    *_, stop = search_solution(make_training(5, rows=600), options, rng())
    assert (stop.iterations, stop.reason) == (20, "iterations")


def test_opt_qm_keeps_to_its_time() -> None:
    stop = Stop(seconds_max=0.4)
    found = optimal(make_problem(0, tuples=12), stop)  # minutes without a limit
    assert stop.reason == "time"
    assert stop.seconds < 2.0
    assert found.cost_us < make_problem(0, tuples=12).evaluate((0,) * 12).cost_us
    training = make_training(5, rows=600)
    options = MeshOptions(search="opt", tuples_max=12)
    assert search_solution(training, options, rng())[2].reason == "all partitions"
    hurried = MeshOptions(search="opt", tuples_max=12, seconds_max=1e-9)
    assert search_solution(training, hurried, rng())[2].reason == "time"


@pytest.mark.parametrize("search", ["ii", "sa", "opt"])
def test_the_limit_of_time_is_for_the_whole_search(search: str) -> None:
    training = make_training(5, rows=1_500, kinds=12)
    endless = MeshOptions(
        search=search,
        tuples_max=12,
        iterations_max=10**9,
        plateau_max=None,
        seconds_max=0.5,
        overheads=Overheads(0.0, 0.0),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(annealing, "COOLING", 1.0)  # never frozen
        began = time.perf_counter()
        found = find_mesh(training, endless, seed=0)
        elapsed_s = time.perf_counter() - began
    assert found.mesh is not None  # both searches were made
    assert found.seconds <= elapsed_s < 0.9  # 1 s if each search had all of it
    if search != "opt":  # which is soon through with few partitions
        assert found.stopped == "time"
        assert found.seconds > 0.4


def test_opt_qm_with_time_sees_all_partitions() -> None:
    stop = Stop(seconds_max=600.0)
    problem = make_problem(1, tuples=5)
    best_us = min(make_problem(1, tuples=5).evaluate(p).cost_us for p in partitions(5))
    assert optimal(problem, stop).cost_us == pytest.approx(best_us)
    assert stop.reason == "all partitions"


# --- the classifier --------------------------------------------------------------------------


@pytest.mark.parametrize("majority", [0, 1, 2])
def test_a_leaf_that_nothing_divides_further_votes(majority: int) -> None:
    labels = np.array([0] * 6 + [1] * 6 + [2] * 6 + [majority] * 3)
    values = pa.array(["same"] * len(labels))
    training = TrainingSet({"kind": values}, np.zeros((len(labels), 2), dtype=bool), [1.0, 1.0])
    tree, predicted, _ = grow_tree(training, labels)
    assert tree.root == Node(majority)
    assert set(predicted.tolist()) == {majority}


def test_each_leaf_votes_by_itself() -> None:
    kinds = ["a"] * 20 + ["b"] * 20
    labels = np.array([0] * 15 + [1] * 5 + [1] * 14 + [0] * 6)
    training = TrainingSet({"kind": pa.array(kinds)}, np.zeros((40, 2), dtype=bool), [1.0, 1.0])
    tree, *_ = grow_tree(training, labels)
    assert tree.classify({"kind": pa.array(["a", "b"])}).tolist() == [0, 1]


def test_a_leaf_has_eight_rows_or_more() -> None:
    labels = np.array([0] * 33 + [1] * 7)
    column = {"x": pa.array(np.arange(40.0))}
    training = TrainingSet(column, np.zeros((40, 2), dtype=bool), [1.0, 1.0])
    tree, predicted, _ = grow_tree(training, labels)
    assert min(np.bincount((predicted == 0).astype(int))) >= 8 or not tree.attributes


# --- options ---------------------------------------------------------------------------------


def test_the_papers_parameters() -> None:
    first, third = MeshOptions.paper(), MeshOptions.paper(table=3)
    assert (first.search, first.start, first.tuples_max, first.iterations_max) == (
        "ii",
        "route",
        10,
        3,
    )
    assert (third.search, third.start, third.tuples_max) == ("sa", "content", 100)
    assert first.ruster_rows_min == third.ruster_rows_min == 100
    for options in (first, third):
        assert options.plateau_max is options.seconds_max is options.planning_s_max is None
        assert options.overheads is None
    with pytest.raises(EddylineError, match="Tables 1 and 3"):
        MeshOptions.paper(table=2)  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [1, 3])
def test_the_papers_parameters_find_classes(table) -> None:
    options = MeshOptions.paper(table)
    found = find_mesh(make_training(5, rows=600), options, seed=0)
    assert found.mesh is not None
    assert found.mesh.tree.attributes == ["kind"]


@pytest.mark.parametrize(
    ("option", "ways"), [("start", STARTS), ("routes", ROUTE_FINDERS)], ids=["start", "routes"]
)
def test_a_given_start_and_way_to_find_routes_reach_the_search(
    option: str, ways: dict[str, Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, way in list(ways.items()):
        recorder = mock.Mock(side_effect=way)
        with monkeypatch.context() as patched:
            patched.setitem(ways, name, recorder)
            find_mesh(make_training(5, rows=300), MeshOptions(**{option: name}), seed=0)  # type: ignore[arg-type]
        assert recorder.called, name


def test_a_classifier_is_as_deep_as_asked_for() -> None:
    kinds = np.arange(400) % 4
    drops = kinds[:, None] == np.arange(4)
    training = TrainingSet({"kind": pa.array(kinds * 1.5)}, drops, [5.0] * 4)

    def depth(node: Node) -> int:
        return 0 if node.split is None else 1 + max(depth(node.left), depth(node.right))

    for depth_max in (1, 2):
        mesh = find_mesh(training, MeshOptions(depth_max=depth_max), seed=0).mesh
        assert mesh is not None
        assert depth(mesh.tree.root) == depth_max


def test_given_overheads_reach_the_search() -> None:
    training = make_training(5, rows=600)
    assert find_mesh(training, seed=0).mesh is not None
    expensive = MeshOptions(overheads=Overheads(test_us=0.0, route_us=1e3))
    assert find_mesh(training, expensive, seed=0).mesh is None


@pytest.mark.parametrize(
    "given",
    [
        {"iterations_max": 0},
        {"plateau_max": 0},
        {"depth_max": 0},
        {"ruster_rows_min": 0},
        {"correlated_rows": 0},
        {"tuples_max": 1},
    ],
    ids=str,
)
def test_numbers_that_make_no_sense_are_refused(given: dict[str, int]) -> None:
    (name,) = given
    with pytest.raises(EddylineError, match=name):
        MeshOptions(**given)  # type: ignore[arg-type]


# --- uncertain steps -------------------------------------------------------------------------


def test_a_settled_mesh_has_the_operators_of_uncertain_steps_in_the_order_found() -> None:
    classes = (RowClass((2, (1, 0)), 0.5, 1.0, 2.0), RowClass((0, 1, 2), 0.5, 1.0, 2.0))
    mesh = Mesh(Tree(Node(0)), classes)
    assert [own.route for own in mesh.settled().classes] == [(2, 1, 0), (0, 1, 2)]
    assert mesh.uncertain_words(["a", "b", "c"]) == ["b|a"]
    assert mesh.settled().uncertain_words(["a", "b", "c"]) == []


def by_kind(
    values: tuple[str, ...],
    routes_of: list[tuple[int, ...]],
    us: float = 1.0,
    known: str = "abcdefghij",
) -> Mesh:
    """Send rows of some kinds along the first route, other known ones along the second."""
    tree = Tree(Node(0, Split("kind", values=values), Node(0), Node(1)), {"kind": tuple(known)})
    return Mesh(tree, tuple(RowClass(route, 0.5, us, 2.0) for route in routes_of))


def test_meshes_are_alike_by_what_they_do_not_by_who_they_are_or_what_they_promise() -> None:
    forth, back = (0, 1), (1, 0)
    mesh = by_kind(("a", "b"), [forth, back])
    assert mesh.is_like(by_kind(("b", "a"), [forth, back], us=9.0))
    assert not mesh.is_like(by_kind(("a", "b"), [back, forth]))
    assert not mesh.is_like(by_kind(("a", "c"), [forth, back]))
    assert mesh.is_like(by_kind(("a", "b"), [forth, back], known="jihgfedcba"))
    assert not mesh.is_like(by_kind(("a", "b"), [forth, back], known="abcdefghijk"))
    assert not mesh.is_like(by_kind(("a", "b"), [((0, 1),), back]))  # type: ignore[list-item]


def test_meshes_that_read_alike_may_differ() -> None:
    """Words name six values; what is behind "..." decides too."""
    one = by_kind(tuple("abcdefg"), [(0, 1), (1, 0)])
    other = by_kind(tuple("abcdefh"), [(0, 1), (1, 0)])
    assert one.words(["p", "q"])[0] == other.words(["p", "q"])[0]
    assert not one.is_like(other)


# --- routes ----------------------------------------------------------------------------------


def test_dynamic_programming_ends_at_ten_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    for name in ("best_ordering", "static_greedy"):
        monkeypatch.setattr(routes, name, lambda drops, cost_us, name=name: used.append(name))
    for operators in (10, 11):
        routes.by_dynamic_programming(np.zeros((5, operators), dtype=bool), np.ones(operators))
    assert used == ["best_ordering", "static_greedy"]


def test_no_rows_leave_the_operators_as_written() -> None:
    none = np.zeros((0, 3), dtype=bool)
    assert routes.by_rank(none, np.ones(3)) == (0, 1, 2)
