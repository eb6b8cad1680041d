"""An ordered index over one column: serves comparisons that no equality narrows down."""

from __future__ import annotations

import numpy as np

from eddyline.arrays import FloatArray, IntArray
from eddyline.index.index import Ranges


class SortedValues:
    """Rows in the order of one column; NaN stands for NULL, which no comparison accepts.

    Parameters
    ----------
    values
        The column.

    Examples
    --------
    >>> index = SortedValues(np.array([5.0, np.nan, 1.0, 3.0]))
    >>> probes, positions = index.ranges(np.array([2.0, 9.0]), np.array([5.0, 9.0])).expand()
    >>> probes.tolist(), index.rows[positions].tolist()
    ([0, 0], [3, 0])

    """

    def __init__(self, values: FloatArray) -> None:
        order = np.argsort(values, kind="stable")  # NaN comes last
        count = len(values) - int(np.isnan(values).sum())
        #: Rows in the order of their values.
        self.rows: IntArray = order[:count]
        self._values = values[self.rows]

    @property
    def bytes(self) -> int:
        """Memory that the index takes beyond the rows, in bytes."""
        return int(self.rows.nbytes + self._values.nbytes)

    def ranges(self, low: FloatArray, high: FloatArray) -> Ranges:
        """Return where the rows are whose value lies between two values of each probe, inclusive.

        Parameters
        ----------
        low, high
            The values; a probe with NaN has no rows.

        """
        starts = np.searchsorted(self._values, low, side="left")
        counts = np.searchsorted(self._values, high, side="right") - starts
        probes = np.flatnonzero((counts > 0) & ~np.isnan(low) & ~np.isnan(high))
        return Ranges(probes, starts[probes], counts[probes])
