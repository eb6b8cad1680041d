"""Rows whose classes are told apart by columns of several kinds, and rows that change with time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, FloatArray
from eddyline.testing.synthetic import draw_answers

KINDS = ("float", "integer", "decimal", "date", "timestamp", "text", "skewed")
SITES = 100  # different texts


def two_classes(rng: np.random.Generator, is_first: BoolArray) -> BoolArray:
    """Return the answers of two filters; each drops 95 % of one class and 5 % of the other.

    With the class of each row known, 1.05 evaluations a row are needed; in one order 1.5.
    """
    selectivity = np.where(is_first[:, None], [0.05, 0.95], [0.95, 0.05])
    return rng.random(selectivity.shape) < selectivity


def classes_by_column(rng: np.random.Generator, kind: str, rows: int) -> tuple[BoolArray, pa.Array]:
    """Return the answers of two filters, and a column of a kind that tells the classes apart.

    Examples
    --------
    >>> passed, column = classes_by_column(np.random.default_rng(0), "date", 1_000)
    >>> passed.shape, column.type
    ((1000, 2), DataType(date32[day]))

    """
    numbers = 1_000 * rng.random(rows)
    is_first = numbers < 437.0
    if kind == "text":
        is_first = (rng.permutation(SITES) < SITES // 2)[(numbers * SITES / 1_000).astype(int)]
    return two_classes(rng, is_first), _column(kind, numbers)


def _column(kind: str, numbers: FloatArray) -> pa.Array:
    match kind:
        case "decimal":
            cents = pa.array((100 * numbers).astype(np.int64)).cast(pa.decimal128(20, 0))
            return cents.cast(pa.decimal128(24, 2))
        case "date":
            return pa.array(numbers.astype(np.int32)).cast(pa.date32())
        case "timestamp":
            return pa.array((1e10 * numbers).astype(np.int64)).cast(pa.timestamp("us", tz="UTC"))
        case "text":
            return pa.array([f"site {int(n) * 37 % SITES}" for n in numbers * SITES / 1_000])
        case "skewed":
            return pa.array(np.exp(numbers / 100))
        case _:
            return pa.array(numbers if kind == "float" else numbers.astype(np.int64))


def _scattered(
    rng: np.random.Generator, rows: int, values: int, is_text: bool
) -> tuple[BoolArray, pa.Array]:
    """Values whose classes have no order."""
    number = rng.integers(0, values, rows)
    is_first = (rng.permutation(values) < values // 2)[number]
    column = pa.array([f"k{n}" for n in number]) if is_text else pa.array(number)
    return two_classes(rng, is_first), column


def _alternating(rng: np.random.Generator, rows: int) -> tuple[BoolArray, pa.Array]:
    numbers = rng.integers(0, 1_000, rows)
    return two_classes(rng, numbers // 125 % 2 == 0), pa.array(numbers)


def _moving(rng: np.random.Generator, rows: int) -> tuple[BoolArray, pa.Array]:
    moving = rng.random(rows) + 3 * np.arange(rows) / rows
    return two_classes(rng, (4 * moving).astype(int) % 2 == 0), pa.array(moving)


def _sorted(
    rng: np.random.Generator, rows: int, each: int, in_turn: int | None = None
) -> tuple[BoolArray, pa.Array]:
    """Texts that rows are sorted by, so many rows each; new ones, or some again and again."""
    block = np.arange(rows) // each
    number = block if in_turn is None else block % in_turn
    is_first = rng.random(number.max() + 1) < 0.5
    is_first[:2] = True, False
    return two_classes(rng, is_first[number]), pa.array([f"site {n:05d}" for n in number])


#: Makes answers of two filters, and a column that tells their classes apart late, or only for rows
#: like those that have come.
HARD_KINDS: Mapping[str, Callable[[np.random.Generator, int], tuple[BoolArray, pa.Array]]] = {
    "150 integers": functools.partial(_scattered, values=150, is_text=False),
    "220 texts": functools.partial(_scattered, values=220, is_text=True),
    "400 texts": functools.partial(_scattered, values=400, is_text=True),
    "8 ranges of an integer": _alternating,
    "ranges that move": _moving,
    "texts for 5,000 rows each": functools.partial(_sorted, each=5_000),
    "texts for 1,000 rows each": functools.partial(_sorted, each=1_000),
    "5 texts in turn, 1,000 rows each": functools.partial(_sorted, each=1_000, in_turn=5),
    "texts for 300 rows each": functools.partial(_sorted, each=300),
}


def rotating(seed: int, period: int, rows: int, filters: int = 4) -> BoolArray:
    """Let another filter drop nearly everything after each period.

    Examples
    --------
    >>> rotating(0, 1_000, 2_000).reshape(2, 1_000, 4).mean(axis=1).argmin(axis=1).tolist()
    [0, 1]

    """
    rng = np.random.default_rng(seed)
    phases = []
    for phase in range(-(-rows // period)):
        selectivities = [0.9] * filters
        selectivities[phase % filters] = 0.05
        phases.append(draw_answers(rng, period, selectivities, correlation=1))
    return np.concatenate(phases)[:rows]
