"""What connects an eddy with its policy: evidence in, an order of operators out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddyline.arrays import BoolArray, IntArray
from eddyline.fabric.checked_order import CheckedOrder
from eddyline.fabric.shared.lineage import Lineage
from eddyline.fabric.shared.operators import SharedOperator
from eddyline.operators import Batch
from eddyline.ordering import Evidence, Policy
from eddyline.ordering.tickets import Tickets
from eddyline.profile import CostModel

# An operator that was not visited yet counts as cheap, so that it is tried soon.
COST_MIN_US = 1e-3


class OrderLearner:
    """Measures what a policy decides on: visits, costs and profile tuples.

    Parameters
    ----------
    policy
        Decides the order of the operators.
    seed
        For whatever the policy draws.

    """

    def __init__(self, policy: Policy, seed: int | None) -> None:
        self.policy = policy
        self._checked_order = CheckedOrder(policy)
        self._seed = seed
        self._names: list[str] = []
        self._costs: dict[str, CostModel] = {}
        policy.start(0, seed=seed)

    @property
    def order(self) -> tuple[int, ...]:
        """Numbers of the operators, in the order of the next chunk."""
        return self._checked_order.read(len(self._names))

    def renew(self, operators: Sequence[SharedOperator]) -> bool:
        """Take over the operators as they are now; return True if they are not those of before.

        The policy starts again if they changed: new operators first, the others in their order.
        """
        names = [operator.name for operator in operators]
        is_changed = names != self._names
        if is_changed:
            number_of = {name: number for number, name in enumerate(names)}
            ordered = [self._names[number] for number in self.order]
            kept = [number_of[name] for name in ordered if name in number_of]
            new = sorted(set(range(len(names))) - set(kept))
            self._names = names
            self._costs = {name: self._costs.get(name) or CostModel() for name in names}
            self.policy.start(len(names), [*new, *kept], self._seed)
        if isinstance(self.policy, Tickets):
            self.policy.weigh([operator.predicates for operator in operators])
        return is_changed

    def add_cost(self, operator: SharedOperator, rows: int, elapsed_us: float) -> None:
        """Take one measured visit into account."""
        self._costs[operator.name].add(rows, elapsed_us)

    def learn(
        self,
        batch: Batch,
        lineage: Lineage,
        operators: Sequence[SharedOperator],
        seen: IntArray,
        passed: IntArray,
    ) -> None:
        """Tell the policy what a chunk showed.

        Parameters
        ----------
        batch, lineage
            The chunk, after it was routed.
        operators
            The operators, by number.
        seen, passed
            Rows that visited each operator, and those of them that were routed on.

        """
        if not (self.policy.learns and len(lineage.rows) and operators):
            return
        tuples = self._profile(batch, lineage, operators)
        if self.policy.profile_probability > 0 and not len(tuples):
            return  # such a policy is called only when there are new profile tuples
        costs_us = [max(self._costs[name].per_row_us, COST_MIN_US) for name in self._names]
        order = self.policy.order
        self.policy.learn(
            Evidence(len(lineage.rows), order, seen, passed, np.array(costs_us), tuples)
        )

    def _profile(
        self, batch: Batch, lineage: Lineage, operators: Sequence[SharedOperator]
    ) -> BoolArray:
        """Return for some rows which operators, alone, reject them for all their users.

        Rows that no operator rejects for all its users are not among them.
        """
        share = self.policy.profile_probability
        if not share:
            return np.zeros((0, len(operators)), dtype=bool)
        picked = np.flatnonzero(self.policy.rng.random(len(lineage.rows)) < share)
        drops = np.zeros((len(picked), len(operators)), dtype=bool)
        if not len(picked):
            return drops
        clause_words = lineage.fulfilled.shape[1]
        for number, operator in enumerate(operators):
            fresh = Lineage.start(lineage.rows[picked], operator.users, clause_words)
            operator.visit(batch, fresh, np.arange(len(picked)))
            drops[:, number] = ~fresh.interested.any(axis=1) & ~fresh.fulfilled.any(axis=1)
        return drops[drops.any(axis=1)]
