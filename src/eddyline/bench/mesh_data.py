"""Rows of the experiments of the paper on Query Mesh, skewed and uniform.

On skewed data there are three kinds of rows, told apart by an attribute with a Poisson
distribution, and each kind has another best order; on uniform data there is one kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray
from eddyline.testing.synthetic import to_columns

OPERATORS = 6
KINDS = 3


@dataclass
class Data:
    """Rows: which operator lets them pass, and their attributes."""

    passed: BoolArray
    attributes: dict[str, pa.Array]

    @property
    def columns(self) -> list[pa.Array]:
        """The answers of the operators, then the attributes."""
        return [*to_columns(self.passed), *self.attributes.values()]


def attributes(rng: np.random.Generator, telling: np.ndarray) -> dict[str, pa.Array]:
    """Return attributes of rows, of which only the first tells anything."""
    rows = len(telling)
    return {
        "a0": pa.array(telling),
        "a1": pa.array(rng.random(rows)),
        "a2": pa.array(rng.integers(0, 50, rows)),
        "a3": pa.array(rng.choice(["x", "y", "z"], rows)),
        "a4": pa.array(np.arange(rows)),
        "a5": pa.array(rng.random(rows) < 0.5),
    }


def skewed(rng: np.random.Generator, rows: int, operators: int = OPERATORS) -> Data:
    """Three kinds of rows; each is dropped by two operators of its own, and by hardly any other."""
    telling = rng.poisson(1.0, rows)
    kinds = np.minimum(telling, KINDS - 1)
    selectivity = np.full((KINDS, operators), 0.95)
    for kind in range(KINDS):
        selectivity[kind, [2 * kind, 2 * kind + 1]] = [0.1, 0.4]
    passed = rng.random((rows, operators)) < selectivity[kinds]
    return Data(passed, attributes(rng, telling))


def uniform(rng: np.random.Generator, rows: int, operators: int = OPERATORS) -> Data:
    """One kind of rows."""
    telling = rng.integers(0, 101, rows)
    passed = rng.random((rows, operators)) < np.resize([0.9, 0.3, 0.8, 0.5, 0.7, 0.6], operators)
    return Data(passed, attributes(rng, telling))
