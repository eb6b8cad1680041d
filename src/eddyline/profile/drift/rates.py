"""A drift alarm that costs nothing: the drop rates along the current order, batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from eddyline.arrays import FloatArray, IntArray


class RateDrift:
    """Notices that the rows are no longer what they were.

    Every batch shows, for free, which share of its rows each position of the current order
    dropped. The alarm compares these shares with a running reference and calls when one of them
    is off by more than chance, by more than a tolerance, and by more than it usually is: rows that
    differ from batch to batch for good are no news. It then starts a new reference.

    This is what lets A-Greedy profile rarely and still react within a batch: the profile is
    refreshed when the alarm calls instead of by waiting until the window has turned over.

    Parameters
    ----------
    deviations
        How many standard deviations count as more than chance.
    tolerance
        Smallest difference of a drop rate that matters.

    Examples
    --------
    >>> drift = RateDrift()
    >>> seen = np.array([4096, 400])
    >>> [drift.update(seen, np.array([3700, 40])) for _ in range(3)]
    [False, False, False]
    >>> drift.update(seen, np.array([900, 40]))  # the first filter dropped 90 %, now 22 %
    True

    """

    _REFERENCE_FADE = 0.75
    _USUAL_FADE = 0.9
    _TIMES_USUAL = 3.0

    def __init__(self, deviations: float = 6.0, tolerance: float = 0.05) -> None:
        self._deviations = deviations
        self._tolerance = tolerance
        self._usual_gap = 0.0
        self.restart()

    def restart(self) -> None:
        """Forget the reference, as after a change of the order."""
        self._seen: FloatArray | None = None
        self._dropped: FloatArray | None = None

    def to_dict(self) -> dict[str, Any] | None:
        """Return what is expected of the rows to come, as plain values; None if not known yet."""
        if self._seen is None or self._dropped is None:
            return None
        return {
            "seen": self._seen.round(1).tolist(),
            "dropped": self._dropped.round(1).tolist(),
            "usual_gap": round(self._usual_gap, 4),
        }

    def resume(self, known: dict[str, Any]) -> None:
        """Expect what another alarm, of the same order, expected."""
        self._seen, self._dropped = np.array(known["seen"]), np.array(known["dropped"])
        self._usual_gap = known["usual_gap"]

    def update(self, seen: IntArray, dropped: IntArray) -> bool:
        """Compare one batch, by position, with the reference; say whether the rows changed."""
        if self._seen is None or self._dropped is None:
            self._seen, self._dropped = seen.astype(float), dropped.astype(float)
            return False
        gap = self._largest_gap(seen, dropped, self._seen, self._dropped)
        is_off = gap > max(self._tolerance, self._TIMES_USUAL * self._usual_gap)
        self._usual_gap = self._USUAL_FADE * self._usual_gap + (1 - self._USUAL_FADE) * gap
        fade = 0.0 if is_off else self._REFERENCE_FADE
        self._seen = fade * self._seen + seen
        self._dropped = fade * self._dropped + dropped
        return is_off

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
            both = (k + reference_k) / (n + reference_n)
            chance = (both * (1 - both) * (1 / n + 1 / reference_n)) ** 0.5
            gap = abs(k / n - reference_k / reference_n)
            if gap > self._deviations * chance:
                largest = max(largest, gap)
        return largest
