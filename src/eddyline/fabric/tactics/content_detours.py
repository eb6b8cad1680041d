"""Detours: how many rows are sent first to the operator that Content-Learns profiles."""

from __future__ import annotations

from eddyline.arrays import FloatArray, IntArray
from eddyline.content import ContentOptions
from eddyline.fabric.operator_array import RouteTrace

PROBABILITY_MIN = 0.01
PROBABILITY_MAX = 0.25


class DetourRate:
    """The share of rows that are sent first to the operator being profiled, P in the paper.

    Such a detour costs a row more than its usual route, or nothing where operators hardly differ.
    The share is set so that detours cost what their budget allows.

    Parameters
    ----------
    options
        Initial share, and the budget for detours; without a budget the share stays as it is.

    """

    def __init__(self, options: ContentOptions) -> None:
        self.probability = options.profile_probability
        self._budget = options.profile_budget
        self.reset()

    def reset(self) -> None:
        """Start to count the detours of another operator."""
        self._rows = 0
        self._seen: IntArray | None = None

    def add(self, trace: RouteTrace) -> None:
        """Count rows that took a detour."""
        self._rows += trace.entered_count
        self._seen = trace.seen if self._seen is None else self._seen + trace.seen

    def adjust(self, usual_us: float, cost_us: FloatArray) -> None:
        """Set the share by what detours and usual routes cost a row."""
        if self._budget is None or self._seen is None:
            return
        detour_us = float(self._seen @ cost_us) / max(self._rows, 1)
        extra = max(detour_us / usual_us - 1.0, 1e-3) if usual_us else 1.0
        wanted = min(max(self._budget / extra, PROBABILITY_MIN), PROBABILITY_MAX)
        self.probability = 0.5 * self.probability + 0.5 * wanted
