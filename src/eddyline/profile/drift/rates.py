"""Drift in drop rates: the shares of rows that each position of the order drops, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eddyline.arrays import FloatArray, IntArray

PRIOR_ROWS = 8  # a rate counted on few rows is taken to be lower than counted
SOON_BATCHES = 1  # an alarm after so few batches says that rows change faster than orders can


@dataclass(frozen=True)
class RateReference:
    """What a detector expects of the rows to come.

    Parameters
    ----------
    seen, dropped
        Rows that reached each position of the order and rows it dropped, as fading sums.
    saving_min
        Share of the cost that another order must promise to save before a change is detected.

    """

    seen: tuple[float, ...]
    dropped: tuple[float, ...]
    saving_min: float

    @property
    def rows(self) -> float:
        """Evaluations that the reference rests on."""
        return sum(self.seen)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {"seen": self.seen, "dropped": self.dropped, "saving_min": self.saving_min}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> RateReference:
        """Read what `to_dict` wrote."""
        return cls(tuple(plain["seen"]), tuple(plain["dropped"]), plain["saving_min"])


class DropRateDetector:
    """Detects that another order has become cheaper, from counts that cost nothing.

    Every batch shows which share of its rows each position of the current order dropped. The
    detector compares these shares with those since the order was decided on. Shares that are off by
    no more than chance count as unchanged. With the others, and as if the predicates were
    independent, it estimates which share of the cost the best order would save. A change is
    detected when that is clearly more than it was for the reference. Rows that change without
    making another order cheaper are not a change (docs/decisions/0025).

    After an alarm that did not lead to another order, the next one must promise twice as much.

    Parameters
    ----------
    deviations
        Number of standard deviations that count as more than chance.
    saving_min
        Smallest share of the cost that another order must promise to save.

    Examples
    --------
    >>> detector = DropRateDetector()
    >>> seen, cost_us = np.array([4096, 400]), np.ones(2)
    >>> for dropped in ([3700, 200], [3700, 200], [900, 200]):  # 90 %, 90 %, then 22 %
    ...     detector.update(seen, np.array(dropped), cost_us)
    ...     print(detector.detected)
    False
    False
    True
    >>> detector.counted_order  # positions of the old order
    [1, 0]

    """

    _REFERENCE_FADE = 0.9
    _BACK_OFF = 2.0
    _BACK_OFF_FADE = 0.98
    _SAVING_MIN_MAX = 0.6

    def __init__(self, deviations: float = 5.0, saving_min: float = 0.05) -> None:
        self._deviations = deviations
        self._saving_min_least = self._saving_min = saving_min
        self.reset()

    def reset(self) -> None:
        """Start without a reference, as after a change of the order."""
        #: Whether the last update showed a change.
        self.detected = False
        #: The positions of the order in the order that is best by the counts of the last update.
        self.counted_order: list[int] = []
        #: Cost of a row in the current and in the counted order, as if all were independent.
        self.counted_cost_us = (0.0, 0.0)
        self._seen: FloatArray | None = None
        self._dropped: FloatArray | None = None
        self._batches = 0

    def reorder(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Expect for another order what is known of it: the rates behind the same predicates.

        The other positions are compared with the next batch but one. A detector that began anew
        with each change of the order would see nothing while orders change with each batch.
        """
        if self._seen is None or self._dropped is None:
            return
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new or set(before[:position]) != set(after[:position]):
                self._seen[position] = self._dropped[position] = np.nan

    def update(self, seen: IntArray, dropped: IntArray, cost_us: FloatArray) -> None:
        """Compare the counts of one batch, by position, with the reference."""
        if self._seen is None or self._dropped is None:
            self._seen, self._dropped = seen.astype(float), dropped.astype(float)
            self.detected = False
            return
        unknown = np.isnan(self._seen)
        self._seen[unknown], self._dropped[unknown] = seen[unknown], dropped[unknown]
        # A handful of scalars a batch: plain Python is faster here than a chain of NumPy calls.
        costs = cost_us.tolist()
        expected = [
            k / (n + PRIOR_ROWS)
            for n, k in zip(self._seen.tolist(), self._dropped.tolist(), strict=True)
        ]
        rates = self._changed_rates(seen, dropped, expected)
        self.detected = False
        if rates != expected:
            self.counted_order = _best_order(rates, costs)
            self.counted_cost_us = (
                _cost(rates, costs, range(len(rates))),
                _cost(rates, costs, self.counted_order),
            )
            usual_saving = _saving(
                _cost(expected, costs, range(len(rates))),
                _cost(expected, costs, _best_order(expected, costs)),
            )
            saving = _saving(*self.counted_cost_us)
            self.detected = saving > usual_saving + self._saving_min
        self._batches += 1
        if self.detected:
            if self._batches <= SOON_BATCHES:
                self.back_off()
            self._batches = 0
        self._saving_min = max(self._saving_min * self._BACK_OFF_FADE, self._saving_min_least)
        fade = 0.0 if self.detected else self._REFERENCE_FADE
        self._seen = fade * self._seen + seen
        self._dropped = fade * self._dropped + dropped

    def back_off(self) -> None:
        """Ask for a larger saving from now on: the last alarm did not lead to another order."""
        self._saving_min = min(self._BACK_OFF * self._saving_min, self._SAVING_MIN_MAX)

    def snapshot(self) -> RateReference | None:
        """Return what is expected of the rows to come; None before it is all known."""
        if self._seen is None or self._dropped is None or np.isnan(self._seen).any():
            return None
        return RateReference(
            tuple(self._seen.round(1).tolist()),
            tuple(self._dropped.round(1).tolist()),
            round(self._saving_min, 4),
        )

    def restore(self, reference: RateReference) -> None:
        """Expect what another detector, of the same order, expected."""
        self._seen, self._dropped = np.array(reference.seen), np.array(reference.dropped)
        self._saving_min = reference.saving_min

    def _changed_rates(
        self, seen: IntArray, dropped: IntArray, expected: Sequence[float]
    ) -> list[float]:
        """Return the rates of a batch where they differ by more than chance, else as expected."""
        assert self._seen is not None
        assert self._dropped is not None
        rates = []
        for n, k, reference_n, reference_k, expected_rate in zip(
            seen.tolist(),
            dropped.tolist(),
            self._seen.tolist(),
            self._dropped.tolist(),
            expected,
            strict=True,
        ):
            rate = expected_rate
            if n >= 1:
                pooled = (k + reference_k) / (n + reference_n)
                chance = (pooled * (1 - pooled) * (1 / n + 1 / max(reference_n, 1.0))) ** 0.5
                gap = abs(k / n - reference_k / max(reference_n, 1.0))
                if gap > self._deviations * chance or reference_n < 1:
                    rate = k / (n + PRIOR_ROWS)
            rates.append(rate)
        return rates


def _best_order(rates: Sequence[float], costs: Sequence[float]) -> list[int]:
    """Return the best order of independent predicates: by drop rate per cost."""
    return sorted(range(len(rates)), key=lambda position: -rates[position] / costs[position])


def _cost(rates: Sequence[float], costs: Sequence[float], order: Sequence[int]) -> float:
    """Return the cost of a row in an order, as if the predicates were independent."""
    total, reach = 0.0, 1.0
    for position in order:
        total += reach * costs[position]
        reach *= 1 - rates[position]
    return total


def _saving(cost_us: float, best_cost_us: float) -> float:
    return 1 - best_cost_us / cost_us
