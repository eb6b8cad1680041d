"""Stream-Star: a stream that joins dimension tables, as in the paper on content-based routing.

Each join drops the rows that find no partner, so it is a filter. One attribute, attrC, tells
classes of rows apart for which the joins have different selectivities; eight others tell nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, FloatArray, IntArray

ROWS = 100_000
DIMENSION_ROWS = 10_000
OTHER_ATTRIBUTES = 8


@dataclass
class Stream:
    """Rows of a stream, and what each join makes of them.

    Parameters
    ----------
    classes
        The class of each row.
    passed
        A line for each row, a column for each join: True where the row finds a partner.
    attributes
        Columns by name: attrC and the others.
    selectivities
        By class and join, as drawn.
    """

    classes: IntArray
    passed: BoolArray
    attributes: dict[str, pa.Array]
    selectivities: FloatArray


def make_stream(rng: np.random.Generator, selectivities: FloatArray, rows: int = ROWS) -> Stream:
    """Return a stream whose classes have the given selectivities.

    Examples
    --------
    >>> stream = make_stream(np.random.default_rng(0), np.array([[0.1, 0.9], [0.9, 0.1]]), 10_000)
    >>> stream.passed[stream.classes == 0].mean(axis=0).round(1).tolist()
    [0.1, 0.9]
    >>> len(stream.attributes)
    9

    """
    classes = rng.integers(0, len(selectivities), rows)
    passed = rng.random((rows, selectivities.shape[1])) < selectivities[classes]
    attributes = {"attrC": pa.array(classes)}
    attributes["constant"] = pa.array(np.full(rows, 7))
    attributes["sequence"] = pa.array(np.arange(rows))
    for join in range(OTHER_ATTRIBUTES - 2):
        attributes[f"fkd{join + 1}"] = pa.array(
            _foreign_keys(rng, passed[:, join % passed.shape[1]])
        )
    return Stream(classes, passed, attributes, selectivities)


def skewed(joins: int, selectivity_a: float, aggregate: float = 0.05) -> FloatArray:
    """Return the selectivities of Table 3: A for the class's own join, B for all others.

    Examples
    --------
    >>> skewed(2, 0.1).round(2).tolist()
    [[0.1, 0.5], [0.5, 0.1]]

    """
    selectivity_b = (aggregate / selectivity_a) ** (1 / (joins - 1))
    table = np.full((joins, joins), selectivity_b)
    np.fill_diagonal(table, selectivity_a)
    return table


def random_selectivities(
    rng: np.random.Generator, joins: int, aggregate: float | None = None
) -> FloatArray:
    """Return random selectivities, by class and join; with a given product if one is asked for."""
    table = rng.uniform(0.02, 0.98, (joins, joins))
    if aggregate is not None:
        logs = np.log(table)
        table = np.exp(logs * (np.log(aggregate) / logs.sum(axis=1, keepdims=True)))
    return table


def calls_in_orders(passed: BoolArray, orders: IntArray) -> float:
    """Return the routing calls a row needs when each row has its own order.

    Examples
    --------
    >>> calls_in_orders(np.array([[False, True], [True, True]]), np.array([[1, 0], [0, 1]]))
    2.0

    """
    in_order = np.take_along_axis(passed, orders, axis=1)
    reached = np.ones(len(passed), dtype=np.int64)
    alive = in_order[:, 0].copy()
    for position in range(1, in_order.shape[1]):
        reached += alive
        alive &= in_order[:, position]
    return float(reached.mean())


def source_based_calls(
    rng: np.random.Generator, passed: BoolArray, chunk_rows: int = 100, memory: float = 0.95
) -> float:
    """Return the calls a row needs under source-based routing, the eddy without content.

    Each row visits next an operator drawn with a probability inversely proportional to its
    selectivity over the rows it has processed lately.
    """
    operators = passed.shape[1]
    selectivity = np.full(operators, 0.5)
    calls = 0.0
    for begin in range(0, len(passed), chunk_rows):
        part = passed[begin : begin + chunk_rows]
        tickets = 1.0 / np.maximum(selectivity, 0.01)
        # Drawing without replacement, in proportion to tickets, is sorting by these keys.
        orders = np.argsort(rng.exponential(size=part.shape) / tickets, axis=1)
        calls += calls_in_orders(part, orders) * len(part)
        in_order = np.take_along_axis(part, orders, axis=1)
        reached = np.ones_like(in_order)
        reached[:, 1:] = np.logical_and.accumulate(in_order, axis=1)[:, :-1]
        for operator in range(operators):
            judged = in_order[(orders == operator) & reached]
            kept = memory ** len(judged)
            if len(judged):
                selectivity[operator] = kept * selectivity[operator] + (1 - kept) * judged.mean()
    return calls / len(passed)


def knowing_calls(stream: Stream) -> float:
    """Return the calls a row needs if its class and all selectivities are known."""
    orders = np.argsort(stream.selectivities, axis=1, kind="stable")
    return calls_in_orders(stream.passed, orders[stream.classes])


def _foreign_keys(rng: np.random.Generator, passed: BoolArray) -> IntArray:
    """Return keys that are in a dimension table exactly where the row passes.

    Half of the keys there are, picked at random, stand in the table: neither the magnitude of a key
    nor its hash says whether it does.
    """
    keys = rng.permutation(2 * DIMENSION_ROWS)
    inside, outside = keys[:DIMENSION_ROWS], keys[DIMENSION_ROWS:]
    picks = rng.integers(0, DIMENSION_ROWS, len(passed))
    return np.where(passed, inside[picks], outside[picks])
