"""What a router has done, as sums that can be added up over tasks and workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eddyline.arrays import FloatArray, IntArray


@dataclass(slots=True)
class Totals:
    """Sums over rows. Arrays are indexed by predicate, in written order.

    An operator that yields several rows for one (the probe of a join) counts in `seen` and
    `passed` as a filter does: rows that reached it, and those of them that found a partner.

    Parameters
    ----------
    predicates
        Number of predicates.
    rows, kept
        Rows processed, and rows that every predicate kept.
    at_fault
        Rows that no predicate dropped and on which one raised; kept or not as `on_error` says.
    seen, passed, failed
        Rows that reached each predicate, that it did not drop, and on which it raised; those on
        which it raised count as not dropped.
    busy_us
        Time inside each predicate, without evaluations that only serve learning.
    profiled, profiled_us
        Evaluations of each predicate that only served learning, and their time. They are of rows
        that had not reached it, picked at random.
    written_seen
        Estimate of the rows that would have reached each predicate in the written order.
    in_order_seen, in_order_us
        Rows that did reach each predicate in the written order, and the time they took.
    profiling_us, deciding_us, routing_us
        Time for evaluations that only serve learning and for class searches; for telling the
        policy, watching for drift and deciding; and for everything else that is not a predicate:
        classifying rows, sending them on their routes, counting.

    Examples
    --------
    >>> one, other = Totals(2), Totals(2)
    >>> one.rows, other.rows = 10, 5
    >>> one.add(other)
    >>> one.rows
    15
    >>> taken = one.take()
    >>> taken.rows, one.rows
    (15, 0)

    """

    predicates: int
    rows: int = 0
    kept: int = 0
    at_fault: int = 0
    profiling_us: float = 0.0
    deciding_us: float = 0.0
    routing_us: float = 0.0
    seen: IntArray = field(init=False)
    passed: IntArray = field(init=False)
    failed: IntArray = field(init=False)
    profiled: IntArray = field(init=False)
    in_order_seen: IntArray = field(init=False)
    busy_us: FloatArray = field(init=False)
    profiled_us: FloatArray = field(init=False)
    written_seen: FloatArray = field(init=False)
    in_order_us: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        for name in _INTS:
            setattr(self, name, np.zeros(self.predicates, dtype=np.int64))
        for name in _FLOATS:
            setattr(self, name, np.zeros(self.predicates))

    @property
    def overhead_us(self) -> float:
        """Time spent on anything but judging rows."""
        return self.profiling_us + self.deciding_us + self.routing_us

    def add(self, other: Totals) -> None:
        """Add another router's sums to these."""
        for name in (*_SCALARS, *_INTS, *_FLOATS):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def copy(self) -> Totals:
        """Return sums of the same value that are independent of these."""
        copied = Totals(self.predicates)
        copied.add(self)
        return copied

    def take(self) -> Totals:
        """Return the sums so far, and start again from zero."""
        taken = self.copy()
        for name in _SCALARS:
            setattr(self, name, type(getattr(self, name))(0))
        for name in (*_INTS, *_FLOATS):
            getattr(self, name)[:] = 0
        return taken

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in _SCALARS}
        plain.update({name: getattr(self, name).tolist() for name in _INTS})
        plain.update({name: getattr(self, name).round(1).tolist() for name in _FLOATS})
        plain["predicates"] = self.predicates
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Totals:
        """Read what `to_dict` wrote."""
        totals = cls(plain["predicates"])
        for name in _SCALARS:
            setattr(totals, name, plain[name])
        for name in (*_INTS, *_FLOATS):
            kind = np.int64 if name in _INTS else np.float64
            setattr(totals, name, np.array(plain[name], dtype=kind))
        return totals


_SCALARS = ("rows", "kept", "at_fault", "profiling_us", "deciding_us", "routing_us")
_INTS = ("seen", "passed", "failed", "profiled", "in_order_seen")
_FLOATS = ("busy_us", "profiled_us", "written_seen", "in_order_us")
