"""Drift in drop rates: the shares of rows that each position of the order drops, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eddyline.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class RateReference:
    """What a detector expects of the rows to come.

    Parameters
    ----------
    seen, dropped
        Rows that reached each position of the order and rows it dropped, as fading sums.
    usual_gap
        Usual difference between a batch and the reference.

    """

    seen: tuple[float, ...]
    dropped: tuple[float, ...]
    usual_gap: float

    @property
    def rows(self) -> float:
        """Evaluations that the reference rests on."""
        return sum(self.seen)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {"seen": self.seen, "dropped": self.dropped, "usual_gap": self.usual_gap}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> RateReference:
        """Read what `to_dict` wrote."""
        return cls(tuple(plain["seen"]), tuple(plain["dropped"]), plain["usual_gap"])


class DropRateDetector:
    """Detects that the rows are no longer what they were, from counts that cost nothing.

    Every batch shows which share of its rows each position of the current order dropped. The
    detector compares these shares with a running reference. It detects a change when one of them
    is off by more than chance, by more than a tolerance, and by more than it usually is (rows that
    differ from batch to batch all the time are not a change). It then starts a new reference.

    This lets A-Greedy profile rarely and still react within a batch: the profile is refreshed when
    a change is detected, without waiting until the window has turned over (docs/decisions/0002).

    Parameters
    ----------
    deviations
        Number of standard deviations that count as more than chance.
    tolerance
        Smallest difference of a drop rate that matters.

    Examples
    --------
    >>> detector = DropRateDetector()
    >>> seen = np.array([4096, 400])
    >>> for dropped in ([3700, 40], [3700, 40], [900, 40]):  # 90 %, 90 %, then 22 %
    ...     detector.update(seen, np.array(dropped))
    ...     print(detector.detected)
    False
    False
    True

    """

    _REFERENCE_FADE = 0.75
    _USUAL_FADE = 0.9
    _TIMES_USUAL = 3.0

    def __init__(self, deviations: float = 6.0, tolerance: float = 0.05) -> None:
        self._deviations = deviations
        self._tolerance = tolerance
        self._usual_gap = 0.0
        self.reset()

    def reset(self) -> None:
        """Start without a reference, as after a change of the order."""
        #: Whether the last update showed a change.
        self.detected = False
        self._seen: FloatArray | None = None
        self._dropped: FloatArray | None = None

    def update(self, seen: IntArray, dropped: IntArray) -> None:
        """Compare the counts of one batch, by position, with the reference."""
        if self._seen is None or self._dropped is None:
            self._seen, self._dropped = seen.astype(float), dropped.astype(float)
            self.detected = False
            return
        gap = self._largest_gap(seen, dropped, self._seen, self._dropped)
        self.detected = gap > max(self._tolerance, self._TIMES_USUAL * self._usual_gap)
        self._usual_gap = self._USUAL_FADE * self._usual_gap + (1 - self._USUAL_FADE) * gap
        fade = 0.0 if self.detected else self._REFERENCE_FADE
        self._seen = fade * self._seen + seen
        self._dropped = fade * self._dropped + dropped

    def snapshot(self) -> RateReference | None:
        """Return what is expected of the rows to come; None before the first batch."""
        if self._seen is None or self._dropped is None:
            return None
        return RateReference(
            tuple(self._seen.round(1).tolist()),
            tuple(self._dropped.round(1).tolist()),
            round(self._usual_gap, 4),
        )

    def restore(self, reference: RateReference) -> None:
        """Expect what another detector, of the same order, expected."""
        self._seen, self._dropped = np.array(reference.seen), np.array(reference.dropped)
        self._usual_gap = reference.usual_gap

    def _largest_gap(
        self,
        seen: IntArray,
        dropped: IntArray,
        reference_seen: FloatArray,
        reference_dropped: FloatArray,
    ) -> float:
        """Return the largest difference of a drop rate that is more than chance, or 0."""
        largest = 0.0
        # A handful of scalars a batch: plain Python is faster here than a chain of NumPy calls.
        for n, k, reference_n, reference_k in zip(
            seen.tolist(),
            dropped.tolist(),
            reference_seen.tolist(),
            reference_dropped.tolist(),
            strict=True,
        ):
            if n < 1 or reference_n < 1:
                continue
            pooled = (k + reference_k) / (n + reference_n)
            chance = (pooled * (1 - pooled) * (1 / n + 1 / reference_n)) ** 0.5
            gap = abs(k / n - reference_k / reference_n)
            if gap > self._deviations * chance:
                largest = max(largest, gap)
        return largest
