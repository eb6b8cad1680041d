"""In which order new rows ask the SteMs of a join tree; decided by a policy that orders filters.

To a policy a SteM is a filter: it drops a row that has no partner there for any query. A policy
that works with profile tuples gets them from a sample of rows that ask every SteM, whether or not
an earlier one has dropped them. A SteM below another in the tree stands for the path to it.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 8.
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 4.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.ordering import Change, Evidence, Policy
from eddyline.ordering.tickets import Tickets
from eddyline.profile import CostModel

COST_MIN_US = 1e-3
PROFILED_ROWS_MIN = 128
# A row that costs so much more or less than before is another kind of row.
DRIFT_MIN = 0.15
DRIFT_ROWS_MIN = 256
LEVEL_SLICES = 4


class ProbeOrder:
    """The order of one join tree.

    Parameters
    ----------
    policy
        An example of the policy; this order gets a copy of its own.
    parents
        For each node, the node that it is probed from; -1 for the root.
    weights
        For each node, the number of queries that it serves.
    seed
        For whatever the policy draws.

    Examples
    --------
    >>> order = ProbeOrder(Tickets(), parents=[-1, -1], weights=[1, 1])
    >>> rows = np.array([1000, 1000]), np.array([900, 100])
    >>> change = order.learn(1000, *rows, candidates=np.array([900, 100]))
    >>> order.current
    [1, 0]

    """

    def __init__(
        self,
        policy: Policy,
        parents: Sequence[int],
        weights: Sequence[int],
        seed: int | None = None,
    ) -> None:
        self._policy = copy.deepcopy(policy)
        self._parents = list(parents)
        self._costs = [CostModel() for _ in parents]
        self._weights = list(weights)
        self._seed = seed
        self._unprofiled_rows = 0.0
        self.begin_with(range(len(self._parents)))

    def begin_with(self, order: Sequence[int]) -> None:
        """Begin with an order, and forget what was learnt."""
        self._policy.start(len(self._parents), order, self._seed)
        #: By order, the comparisons that a row took in it lately.
        self._row_work: dict[tuple[int, ...], float] = {}
        if isinstance(self._policy, Tickets):
            self._policy.weigh(self._weights)

    def branch(self, order: Sequence[int]) -> ProbeOrder:
        """Return an order for some of the rows: the same policy, begun again with another order."""
        branch = copy.deepcopy(self)
        branch.begin_with(order)
        return branch

    @property
    def learns(self) -> bool:
        """Whether there is anything to order, and a policy that ever changes an order."""
        return len(self._parents) > 1 and self._policy.learns

    @property
    def costs_us(self) -> FloatArray:
        """What each node costs a row that asks it, counted: the probe and stored rows compared."""
        return np.array([max(cost.per_row_us, COST_MIN_US) for cost in self._costs])

    @property
    def current(self) -> list[int]:
        """The order of the next slice: as the policy says, but parents before children."""
        return with_parents_first(self._policy.order, self._parents)

    def sample(self, rows: int) -> IntArray:
        """Return the positions of the rows that should ask every SteM.

        They are drawn when enough of them are due: most of what a probe of few rows takes does not
        depend on their number.
        """
        share = self._policy.profile_probability
        if not share or len(self._parents) < 2:
            return np.zeros(0, dtype=np.int64)
        self._unprofiled_rows += share * rows
        if self._unprofiled_rows < PROFILED_ROWS_MIN:
            return np.zeros(0, dtype=np.int64)
        count = min(int(self._unprofiled_rows), rows)
        self._unprofiled_rows = 0.0
        return np.sort(self._policy.rng.choice(rows, count, replace=False))

    def detect_drift(self, rows: int, work: int) -> bool:
        """Return True if a row costs clearly another than rows of the same order did before.

        What policies without profile tuples have learnt is then forgotten: counts of many old rows
        would outweigh those of the new ones for long.

        Parameters
        ----------
        rows, work
            Rows of the last slice, and the comparisons that they took. Few rows show nothing.

        """
        if rows < DRIFT_ROWS_MIN:
            return False
        order, row_work = self._policy.order, work / rows
        level = self._row_work.get(order, row_work)
        if abs(row_work - level) <= DRIFT_MIN * level:
            self._row_work[order] = level + (row_work - level) / LEVEL_SLICES
            return False
        self._row_work = {order: row_work}
        if not self._policy.profile_probability:
            self._policy.forget()
        return True

    def learn(
        self,
        rows: int,
        seen: IntArray,
        passed: IntArray,
        candidates: IntArray,
        drops: BoolArray | None = None,
    ) -> Change | None:
        """Take a slice into account; return the change if the order is now another.

        Parameters
        ----------
        rows
            Rows of the slice.
        seen, passed
            For each node, the rows that asked it, and those that were kept.
        candidates
            Stored rows that each compared. With the probes themselves they are what a SteM costs:
            times would follow whatever else the machine does.
        drops
            For rows of the sample, which nodes drop them.

        """
        for cost, asked, compared in zip(self._costs, seen, candidates, strict=True):
            cost.add(int(asked), float(asked + compared))
        if not self.learns:
            return None
        count = len(self._parents)
        tuples = np.zeros((0, count), dtype=bool) if drops is None else drops[drops.any(axis=1)]
        if self._policy.profile_probability and not len(tuples):
            return None
        evidence = Evidence(rows, self._policy.order, seen, passed, self.costs_us, tuples)
        return self._policy.learn(evidence)


def with_parents_first(order: Sequence[int], parents: Sequence[int]) -> list[int]:
    """Return an order in which every node comes after its parent; otherwise as given.

    Nodes that the order leaves out come last: none may be left out of a join.

    Examples
    --------
    >>> with_parents_first([2, 0, 1], parents=[-1, -1, 1])
    [1, 2, 0]
    >>> with_parents_first([1], parents=[-1, -1])
    [1, 0]

    """
    placed: dict[int, None] = {}

    def place(number: int) -> None:
        if number != -1 and number not in placed:
            place(parents[number])
            placed[number] = None

    for number in (*order, *range(len(parents))):
        place(number)
    return list(placed)
