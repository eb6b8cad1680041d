"""Split: two ways to route rows at the same time, each on half of the rows.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 5.3.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from eddyline.arrays import FloatArray, Rows
from eddyline.fabric.trials.trial import Trial
from eddyline.journal.events import Names, Verdict
from eddyline.mesh import Mesh

SIDE_ROWS = 4_096
SINGLE_ORDER_WORSE_MAX = 1.02  # one order is accepted at up to so many times the cost of a mesh


class SplitTrial(Trial):
    """Compares a mesh with what is in use: another mesh, or one order for all rows (None).

    Rows of one batch are dealt to the two sides at random, so that both see the same kinds of rows
    at the same time. The expected overhead of a mesh is added to what its rows were counted for.

    Parameters
    ----------
    before, after
        Both in words.
    predicates
        Number of predicates.
    meshes
        In use, and on trial.

    Examples
    --------
    >>> trial = SplitTrial(("one order",), ("one order",), predicates=2, meshes=(None, None))
    >>> first, second = trial.deal(np.arange(6), np.random.default_rng(0))
    >>> first.tolist(), second.tolist()
    ([1, 2, 3], [0, 4, 5])

    """

    subject: ClassVar[Literal["classes"]] = "classes"
    method: ClassVar[Literal["split"]] = "split"

    def __init__(
        self,
        before: Names,
        after: Names,
        predicates: int,
        meshes: tuple[Mesh | None, Mesh | None],
    ) -> None:
        super().__init__(before, after, predicates)
        self.overhead_us = [0.0 if mesh is None else mesh.overhead_us for mesh in meshes]
        self._is_simpler = meshes[1] is None
        self.worse_max = SINGLE_ORDER_WORSE_MAX if self._is_simpler else 1.0

    @property
    def trial_rows(self) -> int:
        """Rows that took part in the trial, on both sides."""
        return sum(self.rows)

    @property
    def is_over(self) -> bool:
        """Whether both sides have counted enough rows."""
        return min(self.rows) >= SIDE_ROWS

    def verdict(self, cost_us: FloatArray) -> Verdict:
        """A mesh must be better than what is in use; one order need not be quite as good."""
        before_us, after_us = self.row_costs_us(cost_us)
        if not self._is_simpler and after_us >= before_us:
            return "reverted"
        return super().verdict(cost_us)

    def deal(self, rows: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Return the rows of each side."""
        first = rng.random(len(rows)) < 0.5
        return rows[first], rows[~first]
