"""What connects an eddy with its policy: evidence in, an order of operators out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.arrays import BoolArray, IntArray
from eddyline.fabric.checked_order import CheckedOrder
from eddyline.fabric.shared.learnt import LearntOperator
from eddyline.fabric.shared.lineage import Lineage
from eddyline.fabric.shared.operators import SharedOperator
from eddyline.fabric.shared.precedence import DEAR_US, Precedence
from eddyline.operators import Batch
from eddyline.ordering import Evidence, Policy
from eddyline.ordering.tickets import COST_ALIKE, Tickets
from eddyline.profile import CostModel

COST_MIN_US = 1e-3
# What a predicate costs before it was visited: rows that comparisons reject must not reach a Python
# function that nothing is known of.
PREDICATE_UNKNOWN_US = 1_000.0
# Comparisons in small chunks seem as dear as calls, because a visit has a fixed cost. A predicate
# counts as dearer than it was measured by as much as policies take for equal.
PREDICATE_FACTOR = COST_ALIKE
#: Rows that a cost counts for which another eddy has measured.
ADOPTED_ROWS = 1_000
#: Operators that others are compared with to find those that are wider.
WIDE_MAX = 32


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
        self._is_predicate: list[bool] = []
        self._weights: tuple[list[int], dict[int, list[int]]] = ([], {})
        self._costs: dict[str, CostModel] = {}
        self._precedence = Precedence([])
        policy.start(0, seed=seed)

    @property
    def order(self) -> tuple[int, ...]:
        """Numbers of the operators, in the order of the next chunk."""
        order = self._checked_order.read(len(self._names))
        return self._precedence.apply(order, self._cost_of)

    def renew(self, operators: Sequence[SharedOperator]) -> bool:
        """Take over the operators as they are now; return True if they are not those of before.

        The policy starts again if they changed: new comparisons, the others in their order, new
        predicates.
        """
        names = [operator.name for operator in operators]
        is_changed = names != self._names
        if is_changed:
            number_of = {name: number for number, name in enumerate(names)}
            ordered = [self._names[number] for number in self.order]
            kept = [number_of[name] for name in ordered if name in number_of]
            new = sorted(set(range(len(names))) - set(kept))
            comparisons = [number for number in new if not operators[number].is_predicate]
            predicates = [number for number in new if operators[number].is_predicate]
            self._names = names
            self._is_predicate = [operator.is_predicate for operator in operators]
            self._costs = {name: self._costs.get(name) or CostModel() for name in names}
            self.policy.start(len(names), [*comparisons, *kept, *predicates], self._seed)
        self._precedence = Precedence(operators)
        if isinstance(self.policy, Tickets):
            self._weights = ([o.predicates for o in operators], _wider(operators))
            self.policy.weigh(*self._weights)
        return is_changed

    def learnt(self) -> dict[str, LearntOperator]:
        """Return what was learnt of each operator, by name, in the order they are visited."""
        counts = [(0.0, 0.0)] * len(self._names)
        if isinstance(self.policy, Tickets):
            counts = self.policy.counts()
        learnt = {}
        for number in self.order:
            cost = self._costs[self._names[number]]
            cost_us = cost.per_row_us if cost.known else None
            learnt[self._names[number]] = LearntOperator(cost_us, *counts[number])
        return learnt

    def adopt(self, learnt: Mapping[str, LearntOperator]) -> None:
        """Begin with what another eddy has learnt; operators that it does not know come last."""
        number_of = {name: number for number, name in enumerate(self._names)}
        order = [number_of[name] for name in learnt if name in number_of]
        order += [number for number in self.order if number not in order]
        self.policy.start(len(self._names), order, self._seed)
        for name, own in learnt.items():
            if name in number_of and own.cost_us is not None:
                self._costs[name].add(ADOPTED_ROWS, ADOPTED_ROWS * own.cost_us)
        if isinstance(self.policy, Tickets):
            known = [learnt.get(name, LearntOperator()) for name in self._names]
            self.policy.weigh(*self._weights)
            self.policy.adopt_counts([(own.taken, own.finished) for own in known])

    def is_dear(self, number: int) -> bool:
        """Whether a visit costs much more than finding out which rows need it."""
        return self._cost_of(number) >= DEAR_US

    def _cost_of(self, number: int) -> float:
        """Return what a visit of an operator costs, as policies are told."""
        cost = self._costs[self._names[number]]
        if not self._is_predicate[number]:
            return max(cost.per_row_us, COST_MIN_US)
        return PREDICATE_FACTOR * cost.per_row_us if cost.known else PREDICATE_UNKNOWN_US

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
        costs_us = [self._cost_of(number) for number in range(len(self._names))]
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
        for number, operator in enumerate(operators):
            users = operator.users
            fresh = Lineage.start(lineage.rows[picked], users, lineage.fulfilled.shape[1])
            operator.visit(batch, fresh, np.arange(len(picked)))
            drops[:, number] = ~fresh.interested.any(axis=1) & ~fresh.fulfilled.any(axis=1)
        return drops[drops.any(axis=1)]


def _wider(operators: Sequence[SharedOperator]) -> dict[int, list[int]]:
    """Return for operators those that all of their queries need, and other queries too."""
    if len(operators) < 2:
        return {}
    users = np.array([operator.users for operator in operators])
    counts = np.bitwise_count(users).sum(axis=1)
    wider: dict[int, list[int]] = {}
    for wide in np.argsort(-counts, kind="stable")[:WIDE_MAX].tolist():
        if counts[wide] < 2:
            break
        narrow = (counts < counts[wide]) & (counts > 0) & ~(users & ~users[wide]).any(axis=1)
        for number in np.flatnonzero(narrow).tolist():
            wider.setdefault(number, []).append(wide)
    return wider
