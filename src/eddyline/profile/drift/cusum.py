"""CUSUM: detects that a quantity stays above its expectation for too long to be an accident."""

from __future__ import annotations


class CusumDetector:
    """Page's cumulative sum of weighted deviations above a tolerance, for one direction.

    Deviations beyond the tolerance add up; smaller ones wear the sum down again, never below zero.
    After a detection the sum starts at zero.

    Parameters
    ----------
    tolerance
        Deviation that does not count, relative to what was expected.
    threshold
        Sum of weight times deviation above which a change is detected.

    Examples
    --------
    >>> detector = CusumDetector(tolerance=0.2, threshold=1000)
    >>> for deviation in (0.1, 1.4, 1.4):  # 10 % too much, then 140 %, each for 500 rows
    ...     detector.update(deviation, weight=500)
    ...     print(detector.detected)
    False
    False
    True

    References
    ----------
    Page, Continuous Inspection Schemes, Biometrika 41, 1954.

    """

    def __init__(self, tolerance: float = 0.2, threshold: float = 4_096) -> None:
        self._tolerance = tolerance
        self._threshold = threshold
        self._sum = 0.0
        #: Whether the last update showed a change.
        self.detected = False

    def update(self, deviation: float, weight: float = 1.0) -> None:
        """Add an observation: its deviation from the expectation, and how much it counts."""
        self._sum = max(0.0, self._sum + weight * (deviation - self._tolerance))
        self.detected = self._sum > self._threshold
        if self.detected:
            self._sum = 0.0
