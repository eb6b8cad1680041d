"""The classifier of a mesh: a small decision tree over attributes of all types.

Grown top down by information gain; a leaf is labelled by majority vote. It is not taken from a
library because it splits on sets of strings and on NULL, must grow in Spark workers too, and has to
be compiled into Spark expressions (`docs/decisions/0005`).

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 4.4.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import IntArray
from eddyline.mesh.cut import best_cut, entropy_impurity
from eddyline.mesh.split import Split, value_set
from eddyline.mesh.training import TrainingSet

UNKNOWN = -1
VALUES_REMEMBERED = 10_000
TABLE_VALUES_MAX = 1_024


@dataclass(frozen=True)
class Node:
    """A test with two branches, or a leaf with a label."""

    label: int
    split: Split | None = None
    left: Node | None = None
    right: Node | None = None


@dataclass(frozen=True)
class Tree:
    """A decision tree.

    Parameters
    ----------
    root
        Its first test.
    known
        For each attribute that is tested by its values: the values of the sample. A row with
        another one is of an unknown class, -1.

    Examples
    --------
    >>> night = Node(1, Split("hour", at=6), Node(0), Node(1))
    >>> tree = Tree(night)
    >>> tree.classify({"hour": pa.array([3, 12, None])}).tolist()
    [0, 1, 1]
    >>> for label, path in tree.paths():
    ...     print(label, " and ".join(path))
    0 hour <= 6
    1 hour > 6

    """

    root: Node
    known: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    _by_value: dict[Any, int] = field(default_factory=dict, compare=False, repr=False)
    _tables: dict[tuple[int, int], IntArray] = field(
        default_factory=dict, compare=False, repr=False
    )

    @functools.cached_property
    def attributes(self) -> list[str]:
        """The attributes tested, each once."""
        return list(dict.fromkeys(n.split.attribute for n in self._nodes(self.root) if n.split))

    @property
    def labels(self) -> list[int]:
        """The labels at the leaves, each once, ascending."""
        return sorted({node.label for node in self._nodes(self.root) if node.split is None})

    def classify(self, columns: Mapping[str, pa.Array]) -> IntArray:
        """Return the label of each row; -1 where an attribute has a value not met in training."""
        attributes = self.attributes
        if len(attributes) == 1 and attributes[0] in self.known:
            return self._classify_values(attributes[0], columns[attributes[0]])
        return self._classify_rows(columns)

    def _classify_values(self, attribute: str, column: pa.Array) -> IntArray:
        """Classify each value of the only attribute once, however many rows have it."""
        if pa.types.is_signed_integer(column.type) and not column.null_count and len(column):
            values: IntArray = column.to_numpy().astype(np.int64, copy=False)
            low, high = int(values.min()), int(values.max())
            if high - low < TABLE_VALUES_MAX:
                return self._table(attribute, low, high, column.type)[values - low]
        encoded = column.dictionary_encode()
        met = encoded.dictionary.to_pylist()
        met.append(None)  # NULL, at index -1
        known = self._by_value
        new = [value for value in met if value not in known]
        if new:
            found = self._classify_rows({attribute: pa.array(new, type=column.type)})
            if len(known) > VALUES_REMEMBERED:
                known.clear()
                found = self._classify_rows({attribute: pa.array(met, type=column.type)})
                new = met
            known.update(zip(new, found.tolist(), strict=True))
        by_code = np.array([known[value] for value in met])
        indices = encoded.indices
        codes = pc.fill_null(indices, -1) if indices.null_count else indices
        labels: IntArray = by_code[codes.to_numpy()]
        return labels

    def _table(self, attribute: str, low: int, high: int, kind: pa.DataType) -> IntArray:
        """Return the labels of all whole numbers from low to high."""
        table = self._tables.get((low, high))
        if table is None:
            if len(self._tables) > VALUES_REMEMBERED // TABLE_VALUES_MAX:
                self._tables.clear()
            table = self._classify_rows({attribute: pa.array(range(low, high + 1), type=kind)})
            self._tables[low, high] = table
        return table

    def _classify_rows(self, columns: Mapping[str, pa.Array]) -> IntArray:
        first = next(iter(columns.values()))
        labels = self._classify(self.root, columns, len(first))
        for attribute, values in self.known.items():
            column = columns[attribute]
            met = pc.is_in(column, value_set=value_set(values, column.type))
            if column.null_count:
                met = pc.or_(met, pc.is_null(column))
            if met.true_count < len(met):
                labels[~met.to_numpy(zero_copy_only=False)] = UNKNOWN
        return labels

    def _classify(self, node: Node, columns: Mapping[str, pa.Array], rows: int) -> IntArray:
        if node.split is None or node.left is None or node.right is None:
            return np.full(rows, node.label, dtype=np.int64)
        left = node.split.goes_left(columns[node.split.attribute])
        return np.where(
            left,
            self._classify(node.left, columns, rows),
            self._classify(node.right, columns, rows),
        )

    def paths(self) -> list[tuple[int, list[str]]]:
        """Return each leaf's label with the tests that lead to it, in words."""
        found: list[tuple[int, list[str]]] = []

        def walk(node: Node, path: list[tuple[Split, bool]]) -> None:
            if node.split is None or node.left is None or node.right is None:
                found.append((node.label, self._path_words(path)))
                return
            walk(node.left, [*path, (node.split, True)])
            walk(node.right, [*path, (node.split, False)])

        walk(self.root, [])
        return found

    def _path_words(self, path: list[tuple[Split, bool]]) -> list[str]:
        """Return the tests on a path as text, those on one discrete attribute as a single one."""
        words = []
        for attribute in dict.fromkeys(split.attribute for split, _ in path):
            own = [(split, holds) for split, holds in path if split.attribute == attribute]
            if len(own) == 1 or attribute not in self.known:
                words += [split.words(holds) for split, holds in own]
                continue
            values = set(self.known[attribute])
            with_null = True
            for split, holds in own:
                left = set(split.values or ())
                values = values & left if holds else values - left
                with_null = with_null and split.null_left == holds
            left_over = Split(attribute, values=tuple(sorted(values, key=str)), null_left=with_null)
            words.append(left_over.words(True))
        return words

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        packed = {
            name: Split(name, values=values).to_dict()["values"]
            for name, values in self.known.items()
        }
        return {"root": _node_to_dict(self.root), "known": packed}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Tree:
        """Read what `to_dict` wrote."""
        known = {}
        for name, values in plain["known"].items():
            split = {"attribute": name, "at": None, "values": values, "null_left": False}
            known[name] = Split.from_dict(split).values or ()
        return cls(_node_from_dict(plain["root"]), known)

    @staticmethod
    def _nodes(node: Node) -> Iterator[Node]:
        yield node
        if node.left is not None and node.right is not None:
            yield from Tree._nodes(node.left)
            yield from Tree._nodes(node.right)


def grow_tree(
    training: TrainingSet,
    labels: IntArray,
    depth_max: int = 4,
    leaf_rows_min: int = 8,
) -> tuple[Tree, IntArray, IntArray]:
    """Grow a tree that tells the labels apart.

    Returns
    -------
    tree
        The classifier.
    predicted
        The label it gives to each training row.
    depth
        Number of tests that each training row takes.

    """
    classes = int(labels.max()) + 1 if len(labels) else 1
    one_hot = np.eye(classes)[labels]
    predicted = np.empty(training.rows, dtype=np.int64)
    depths = np.empty(training.rows, dtype=np.int64)

    def grow(rows: IntArray, depth: int) -> Node:
        counts = one_hot[rows].sum(axis=0)
        label = int(np.argmax(counts))
        if depth < depth_max and np.count_nonzero(counts) > 1:
            cut = best_cut(training.attributes, rows, one_hot, entropy_impurity, leaf_rows_min)
            if cut is not None:
                left = cut.goes_left(rows)
                low, high = grow(rows[left], depth + 1), grow(rows[~left], depth + 1)
                if low.split or high.split or low.label != high.label:
                    return Node(label, cut.split, low, high)
        predicted[rows], depths[rows] = label, depth
        return Node(label)

    root = grow(np.arange(training.rows), 0)
    tree = Tree(root)
    known = {
        attribute.name: tuple(attribute.bounds)
        for attribute in training.attributes
        if attribute.name in tree.attributes and not attribute.is_ordered
    }
    return Tree(root, known), predicted, depths


def _node_to_dict(node: Node) -> dict[str, Any]:
    plain: dict[str, Any] = {"label": node.label}
    if node.split is not None and node.left is not None and node.right is not None:
        plain["split"] = node.split.to_dict()
        plain["left"], plain["right"] = _node_to_dict(node.left), _node_to_dict(node.right)
    return plain


def _node_from_dict(plain: dict[str, Any]) -> Node:
    if "split" not in plain:
        return Node(plain["label"])
    return Node(
        plain["label"],
        Split.from_dict(plain["split"]),
        _node_from_dict(plain["left"]),
        _node_from_dict(plain["right"]),
    )
