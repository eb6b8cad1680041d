"""The classifier: against scikit-learn, on all types, with NULLs, and as plain values."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeClassifier

from eddyline.mesh import tree as tree_module
from eddyline.mesh.cut import best_cut, variance_impurity
from eddyline.mesh.split import Split
from eddyline.mesh.training import BinnedAttribute, TrainingSet
from eddyline.mesh.tree import TABLE_VALUES_MAX, UNKNOWN, Node, Tree, grow_tree


def from_sklearn(fitted, names):
    """Return a fitted tree of scikit-learn as one of ours."""
    arrays = fitted.tree_

    def build(at):
        label = int(fitted.classes_[np.argmax(arrays.value[at][0])])
        if arrays.children_left[at] == -1:
            return Node(label)
        split = Split(names[arrays.feature[at]], at=float(arrays.threshold[at]))
        return Node(label, split, build(arrays.children_left[at]), build(arrays.children_right[at]))

    return Tree(build(0))


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_of_sklearn_classifies_every_row_as_sklearn_does(seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(400, 3)).astype(np.float32)
    labels = (features[:, 0] > 0).astype(int) + 2 * (features[:, 1] * features[:, 2] > 0)
    fitted = DecisionTreeClassifier(max_depth=5, random_state=seed).fit(features, labels)
    fresh = rng.normal(size=(1_000, 3)).astype(np.float32)
    columns = {name: pa.array(fresh[:, n].astype(float)) for n, name in enumerate("xyz")}
    assert from_sklearn(fitted, "xyz").classify(columns).tolist() == fitted.predict(fresh).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_our_own_tree_is_as_good_as_sklearns(seed):
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 60, (500, 3)).astype(float)
    labels = (features[:, 0] > 30).astype(int) + (features[:, 1] > 45)
    training = TrainingSet(
        {n: pa.array(features[:, i]) for i, n in enumerate("xyz")},
        np.zeros((500, 2), dtype=bool),
        [1.0, 1.0],
    )
    tree, predicted, depths = grow_tree(training, labels, depth_max=3, leaf_rows_min=1)
    own = (tree.classify(training.columns) == labels).mean()
    theirs = DecisionTreeClassifier(max_depth=3, criterion="entropy", random_state=0)
    assert own >= theirs.fit(features, labels).score(features, labels) - 1e-9
    assert predicted.tolist() == tree.classify(training.columns).tolist()
    assert depths.max() <= 3


def test_all_types_with_nulls_and_nan():
    rng = np.random.default_rng(0)
    rows = 300
    labels = rng.integers(0, 2, rows)
    day = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    by_label = {
        "text": [["a", "b"][label] for label in labels],
        "flag": [bool(label) for label in labels],
        "fraction": [float("nan") if label else 1.5 for label in labels],
        "whole": [None if label else 3 for label in labels],
        "price": [decimal.Decimal(int(label)) + decimal.Decimal("0.50") for label in labels],
        "when": [day + datetime.timedelta(days=int(label)) for label in labels],
        "date": [(day + datetime.timedelta(days=int(label))).date() for label in labels],
    }
    for name, values in by_label.items():
        training = TrainingSet({name: pa.array(values)}, np.zeros((rows, 2), dtype=bool), [1, 1])
        tree, predicted, _ = grow_tree(training, labels)
        assert predicted.tolist() == labels.tolist(), name
        again = Tree.from_dict(tree.to_dict())
        assert again == tree, name
        assert again.classify(training.columns).tolist() == labels.tolist(), name


def test_a_leaf_is_labelled_by_majority_vote():
    values = pa.array(["x"] * 10)
    training = TrainingSet({"kind": values}, np.zeros((10, 2), dtype=bool), [1.0, 1.0])
    tree, predicted, _ = grow_tree(training, np.array([0] * 3 + [1] * 7))
    assert tree.root == Node(1)
    assert predicted.tolist() == [1] * 10


def test_a_value_that_training_did_not_have_is_of_no_known_class():
    tree = Tree(Node(0, Split("kind", values=("a",)), Node(0), Node(1)), {"kind": ("a", "b")})
    columns = {"kind": pa.array(["a", "b", "new", None])}
    assert tree.classify(columns).tolist() == [0, 1, UNKNOWN, 1]


def test_an_empty_batch_is_classified():
    tree = Tree(Node(0, Split("hour", at=6), Node(0), Node(1)))
    assert tree.classify({"hour": pa.array([], pa.int64())}).tolist() == []


def test_tests_on_one_attribute_are_said_as_one():
    tree = Tree(
        Node(
            0,
            Split("kind", values=("a",)),
            Node(0),
            Node(1, Split("kind", values=("b",)), Node(1), Node(2)),
        ),
        {"kind": ("a", "b", "c", "d")},
    )
    assert tree.paths() == [(0, ["kind = a"]), (1, ["kind = b"]), (2, ["kind in {c, d} or NULL"])]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [-128, 127, 0, -1]),
        (pa.int64(), [2**63 - 1, 2**63 - 5]),
        (pa.int64(), [-(2**63), 2**63 - 1]),
        (pa.int32(), [7, 7]),
    ],
    ids=str,
)
def test_whole_numbers_of_every_range_are_classified_by_value(kind, values):
    node = Node(0, Split("x", values=tuple(values[::2]), null_left=True), Node(1), Node(2))
    tree = Tree(node, {"x": tuple(values)})
    column = pa.array(values, kind)
    expected = [1 if value in values[::2] else 2 for value in values]
    assert tree.classify({"x": column}).tolist() == expected
    with_null = pa.array([*values, None], kind)
    assert tree.classify({"x": with_null}).tolist() == [*expected, 1]


def test_two_attributes_with_values_are_both_tested() -> None:
    tree = Tree(
        Node(
            0,
            Split("kind", values=("a",)),
            Node(0, Split("site", values=("x",)), Node(0), Node(1)),
            Node(2),
        ),
        {"kind": ("a", "b"), "site": ("x", "y")},
    )
    columns = {"kind": pa.array(["a", "a", "b", "a"]), "site": pa.array(["x", "y", "x", "new"])}
    assert tree.classify(columns).tolist() == [0, 1, 2, UNKNOWN]


def test_values_are_divided_by_their_rate_not_by_how_many_rows_they_have() -> None:
    kinds = np.repeat(["p", "q", "r"], [300, 20, 40])
    rates = [np.arange(300) < 30, np.arange(20) < 18, np.arange(40) < 6]  # 0.1, 0.9 and 0.15
    targets = np.concatenate(rates).astype(float)[:, None]
    attribute = BinnedAttribute("kind", pa.array(kinds))
    cut = best_cut([attribute], np.arange(360), targets, variance_impurity, leaf_rows_min=4)
    assert cut is not None
    assert set(cut.split.values or ()) in ({"q"}, {"p", "r"})


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_what_is_remembered_of_values_is_bounded(monkeypatch, kind):
    monkeypatch.setattr(tree_module, "VALUES_REMEMBERED", 4 * TABLE_VALUES_MAX)
    split = Split("k", values=tuple(pa.array([3]).cast(kind).to_pylist()))
    tree = Tree(Node(0, split, Node(0), Node(1)), {"k": split.values})
    for low in range(0, 30_000, 1_000):
        column = pa.array(range(low, low + 1_000)).cast(kind)
        labels = tree.classify({"k": column})
        assert np.flatnonzero(labels == 0).tolist() == ([3] if low == 0 else [])
        assert len(tree._tables) <= 5
        assert len(tree._by_value) <= 4 * TABLE_VALUES_MAX + 1_001
