"""The Greedy Invariant, computed from its definition: what the tests of A-Greedy compare with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def satisfies_greedy_invariant(
    order: Sequence[int], drops: np.ndarray, cost_us: np.ndarray
) -> bool:
    """Return True if no later filter beats the one at an earlier position (definition 4.1)."""
    alive = np.ones(len(drops), dtype=bool)
    for position, filter_ in enumerate(order):
        rest = list(order[position:])
        rates = drops[alive][:, rest].sum(axis=0) / cost_us[rest]
        if rates[0] < rates.max() * (1 - 1e-12):
            return False
        alive &= ~drops[:, filter_]
    return True


def matrix_from_scratch(order: Sequence[int], tuples: np.ndarray) -> np.ndarray:
    """Return the matrix view of a window that holds exactly these tuples (section 4.2.1)."""
    matrix = np.zeros((len(order), len(order)), dtype=np.int64)
    alive = np.ones(len(tuples), dtype=bool)
    for row, filter_ in enumerate(order):
        matrix[row, row:] = tuples[alive][:, list(order[row:])].sum(axis=0)
        alive &= ~tuples[:, filter_]
    return matrix
