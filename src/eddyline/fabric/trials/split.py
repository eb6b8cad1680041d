"""Two ways to route rows, side by side, each with its half of the rows, until one has won.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import FloatArray, Rows
from eddyline.fabric.operator_array import Trail
from eddyline.mesh import Mesh

ROWS_EACH = 4_096


@dataclass
class SideBySide:
    """Compares a mesh with what is in use: another mesh, or one order for all rows (None).

    Rows of one batch are dealt out at random, so that both see the same kinds of rows at the same
    time. Compared is what was counted, priced with the same costs, and the expected overhead.

    Parameters
    ----------
    before, after
        In use, and on trial.

    Examples
    --------
    >>> trial = SideBySide(None, None)
    >>> first, second = trial.deal(np.arange(6), np.random.default_rng(0))
    >>> first.tolist(), second.tolist()
    ([1, 2, 3], [0, 4, 5])

    """

    before: Mesh | None
    after: Mesh | None
    rows: list[int] = field(default_factory=lambda: [0, 0])
    _seen: list[FloatArray | None] = field(default_factory=lambda: [None, None])

    def deal(self, rows: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Return the rows of each side."""
        first = rng.random(len(rows)) < 0.5
        return rows[first], rows[~first]

    def add(self, side: int, trails: Sequence[Trail]) -> None:
        """Count what a batch has cost one side."""
        for trail in trails:
            self.rows[side] += trail.entered_count
            known = self._seen[side]
            self._seen[side] = trail.seen.astype(float) if known is None else known + trail.seen

    @property
    def is_over(self) -> bool:
        """Whether both sides have seen enough rows."""
        return min(self.rows) >= ROWS_EACH

    def costs_us(self, cost_us: FloatArray) -> tuple[float, float]:
        """Return what a row has cost before and after."""
        costs = []
        for side, mesh in enumerate((self.before, self.after)):
            seen = self._seen[side]
            counted = 0.0 if seen is None else float(seen @ cost_us) / max(self.rows[side], 1)
            costs.append(counted + (mesh.overhead_us if mesh is not None else 0.0))
        return costs[0], costs[1]
