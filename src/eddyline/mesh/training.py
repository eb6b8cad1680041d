"""The training set: sampled rows, what every operator does to them, and their attributes.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, sections 4.2 and 4.3.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.attributes.kinds import is_discrete

BINS_MAX = 64


class BinnedAttribute:
    """An attribute of the sampled rows, cut into bins that a tree may split between.

    Ordered attributes (numbers, dates, timestamps) have bins of about the same number of different
    values, bounded by values that occur in the sample. Others have a bin for each value. NULL has
    the last bin.

    Parameters
    ----------
    name
        Of the column.
    values
        Of the sampled rows.

    Examples
    --------
    >>> age = BinnedAttribute("age", pa.array([30.5, 10.0, None, 20.0]))
    >>> age.codes.tolist(), age.bounds, age.null_code
    ([2, 0, 4, 1], [10.0, 20.0, 30.5], 4)
    >>> color = BinnedAttribute("color", pa.array(["red", "blue", "red"]))
    >>> color.codes.tolist(), color.bounds
    ([0, 1, 0], ['red', 'blue'])

    """

    def __init__(self, name: str, values: pa.Array) -> None:
        self.name = name
        self.is_ordered = not is_discrete(values)
        self._is_integer = pa.types.is_integer(values.type)
        self.bounds: list[Any]
        self.codes: IntArray
        if self.is_ordered:
            self._cut(values)
        else:
            encoded = values.dictionary_encode()
            self.bounds = encoded.dictionary.to_pylist()
            indices = pc.fill_null(encoded.indices, len(self.bounds))
            self.codes = indices.to_numpy(zero_copy_only=False).astype(np.int64)
            self.null_code = len(self.bounds)
        self.bins = self.null_code + 1

    @property
    def has_magnitude(self) -> bool:
        """Whether values can be near to each other: numbers, dates and timestamps."""
        return self.is_ordered or self._is_integer

    def ranks(self) -> IntArray:
        """Return the position of each bin in the order of values; NULL is last."""
        ranks = np.arange(self.bins)
        if not self.is_ordered:
            by_value = sorted(range(len(self.bounds)), key=self.bounds.__getitem__)
            ranks[by_value] = np.arange(len(by_value))
        return ranks

    def _cut(self, values: pa.Array) -> None:
        known = values.drop_null()
        if pa.types.is_floating(known.type):
            values = pc.add(values, pa.scalar(0, values.type))  # -0.0 becomes 0.0
            known = values.drop_null()
            known = known.filter(pc.invert(pc.is_nan(known)))
        distinct = pc.unique(known)
        distinct = distinct.take(pc.sort_indices(distinct))
        step = max(1, -(-len(distinct) // BINS_MAX))
        chosen = np.arange(step - 1, len(distinct), step)
        if len(distinct) % step:
            chosen = np.append(chosen, len(distinct) - 1)
        self.bounds = distinct.take(pa.array(chosen)).to_pylist()
        # One more bin above all bounds for NaN, for which `<=` never holds.
        self.null_code = len(self.bounds) + 1
        ranks = pc.fill_null(pc.index_in(values, value_set=distinct), len(distinct)).to_numpy()
        self.codes = np.searchsorted(chosen, ranks).astype(np.int64)
        self.codes[pc.is_null(values).to_numpy(zero_copy_only=False)] = self.null_code


class TrainingSet:
    """Sampled rows that every operator has judged.

    Parameters
    ----------
    attributes
        Columns that may tell classes of rows apart, by name.
    drops
        One row for each sampled row and one column for each operator: True where it drops the row.
    cost_us
        What each operator costs, in microseconds a row.

    """

    def __init__(
        self,
        attributes: Mapping[str, pa.Array],
        drops: BoolArray,
        cost_us: Sequence[float] | FloatArray,
    ) -> None:
        self.drops = np.asarray(drops, dtype=bool)
        self.cost_us: FloatArray = np.asarray(cost_us, dtype=float)
        self.rows, self.operators = self.drops.shape
        self.columns = dict(attributes)
        self.attributes = [BinnedAttribute(name, values) for name, values in attributes.items()]

    def with_attributes(self, names: Sequence[str]) -> TrainingSet:
        """Return the same rows with some of the attributes only."""
        narrowed = copy.copy(self)
        narrowed.attributes = [a for a in self.attributes if a.name in names]
        return narrowed

    def subset(self, rows: IntArray) -> TrainingSet:
        """Return some of the rows as a training set of their own."""
        taken = {name: values.take(pa.array(rows)) for name, values in self.columns.items()}
        return TrainingSet(taken, self.drops[rows], self.cost_us)
