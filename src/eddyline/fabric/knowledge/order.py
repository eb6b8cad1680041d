"""What is known where all rows take one order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from eddyline.arrays import BoolArray
from eddyline.errors import EddylineError
from eddyline.ordering.static import ordering_cost
from eddyline.profile import RateReference

TUPLES_MAX = 1_000

Costs = tuple[float | None, ...]


@dataclass(frozen=True)
class OrderKnowledge:
    """An order, and the evidence that it was chosen on.

    Parameters
    ----------
    order
        The predicates, by number.
    cost_us
        Cost of each predicate, in microseconds a row; None where it was not measured.
    tuples
        Profile tuples.
    expected
        Drop rates that rows have along the order.

    Examples
    --------
    >>> one = OrderKnowledge((0, 1), (1.0, None), np.array([[False, True]] * 3))
    >>> other = OrderKnowledge((1, 0), (3.0, 2.0), np.array([[False, True]] * 3))
    >>> merged = OrderKnowledge.merge([one, other])
    >>> merged.order, merged.cost_us, len(merged.tuples)
    ((1, 0), (2.0, 2.0), 6)
    >>> OrderKnowledge.from_dict(merged.to_dict()) == merged
    True

    """

    kind: ClassVar[str] = "order"
    version: ClassVar[int] = 2

    order: tuple[int, ...]
    cost_us: Costs
    tuples: BoolArray = field(compare=False)
    expected: RateReference | None = None

    @classmethod
    def merge(cls, parts: Sequence[OrderKnowledge]) -> OrderKnowledge:
        """Return the best of the orders, mean costs, and tuples of all."""
        cost_us = merge_costs([part.cost_us for part in parts])
        share = TUPLES_MAX // len(parts) + 1
        tuples = np.concatenate([part.tuples[-share:] for part in parts])
        # Mixed: a window keeps the newest tuples, which would otherwise be the last worker's.
        tuples = np.random.default_rng(0).permutation(tuples)
        orders = Counter(part.order for part in parts)
        order = max(orders, key=orders.__getitem__)
        if len(tuples):
            prices = np.array([1.0 if us is None else max(us, 1e-4) for us in cost_us])
            order = min(orders, key=lambda candidate: ordering_cost(candidate, tuples, prices))
        references = [part.expected for part in parts if part.order == order and part.expected]
        expected = max(references, key=lambda reference: reference.rows, default=None)
        return cls(order, cost_us, tuples, expected)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "kind": self.kind,
            "version": self.version,
            "order": list(self.order),
            "cost_us": list(self.cost_us),
            "tuples": pack_tuples(self.tuples),
            "expected": None if self.expected is None else self.expected.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> OrderKnowledge:
        """Read what `to_dict` wrote."""
        check_version(cls, plain)
        expected = plain["expected"]
        return cls(
            tuple(plain["order"]),
            tuple(plain["cost_us"]),
            unpack_tuples(plain["tuples"], len(plain["order"])),
            None if expected is None else RateReference.from_dict(expected),
        )


def merge_costs(parts: Sequence[Costs]) -> Costs:
    """Return the mean of what several workers measured, predicate by predicate."""
    merged: list[float | None] = []
    for by_worker in zip(*parts, strict=True):
        measured = [us for us in by_worker if us is not None]
        merged.append(sum(measured) / len(measured) if measured else None)
    return tuple(merged)


def check_version(cls: Any, plain: dict[str, Any]) -> None:
    """Refuse knowledge that another version of Eddyline wrote in another form."""
    if plain["version"] != cls.version:
        raise EddylineError(
            f"knowledge of kind {cls.kind!r} has the version {plain['version']}, and this Eddyline "
            f"reads version {cls.version}; start without it, it will be learnt again"
        )


def pack_tuples(tuples: BoolArray) -> str:
    """Return profile tuples as text that fits into JSON.

    Examples
    --------
    >>> pack_tuples(np.array([[True, False], [True, True]]))
    '80c0'

    """
    return np.packbits(tuples, axis=1).tobytes().hex()


def unpack_tuples(packed: str, filters: int) -> BoolArray:
    """Read what `pack_tuples` wrote.

    Examples
    --------
    >>> unpack_tuples("80c0", filters=2).tolist()
    [[True, False], [True, True]]

    """
    bytes_per_tuple = (filters + 7) // 8
    raw = np.frombuffer(bytes.fromhex(packed), dtype=np.uint8).reshape(-1, bytes_per_tuple)
    return np.unpackbits(raw, axis=1, count=filters).astype(bool)
