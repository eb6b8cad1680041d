"""A policy's order, checked once for each change: every operator must be in it once.

An order that leaves an operator out would let rows pass that the operator drops.
"""

from __future__ import annotations

from eddyline.errors import InvalidPolicyError
from eddyline.ordering import Policy


class CheckedOrder:
    """Reads the order of a policy.

    Parameters
    ----------
    policy
        Decides the order.

    Examples
    --------
    >>> from eddyline.ordering import AsWritten
    >>> policy = AsWritten()
    >>> policy.start(filters=2)
    >>> CheckedOrder(policy).read(operators=2)
    (0, 1)
    >>> policy.order = (0,)
    >>> CheckedOrder(policy).read(operators=2)
    Traceback (most recent call last):
    ...
    eddyline.errors.InvalidPolicyError: policy 'as_written' returned [0], which is not a \
permutation of the 2 operators; it must name each of them once

    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._checked: tuple[int, ...] | None = None

    def read(self, operators: int) -> tuple[int, ...]:
        """Return the policy's order; raise if it is not a permutation of so many operators."""
        order = self._policy.order
        if order is not self._checked:
            if sorted(order) != list(range(operators)):
                raise InvalidPolicyError(
                    f"policy {self._policy.name!r} returned {list(order)}, which is not a "
                    f"permutation of the {operators} operators; it must name each of them once"
                )
            self._checked = order
        return order
