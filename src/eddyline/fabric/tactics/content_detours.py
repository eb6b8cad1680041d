"""Detours: how many rows are sent first to the operator that Content-Learns profiles."""

from __future__ import annotations

from collections.abc import Sequence

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
    operators
        Number of operators.
    options
        Initial share, and the budget for detours; without a budget the share stays as it is.

    """

    def __init__(self, operators: int, options: ContentOptions) -> None:
        #: The share of each operator.
        self.probability = [options.profile_probability] * operators
        self._budget = options.profile_budget
        self._reset()

    def _reset(self) -> None:
        """Start to count the detours of another operator."""
        self._rows = self._usual_rows = 0
        self._seen: IntArray | None = None
        self._usual_seen: IntArray | None = None

    def add(self, trace: RouteTrace) -> None:
        """Count rows that took a detour."""
        self._rows += trace.entered_count
        self._seen = trace.seen if self._seen is None else self._seen + trace.seen

    def add_usual(self, trace: RouteTrace) -> None:
        """Count rows that took their usual route."""
        self._usual_rows += trace.entered_count
        seen = trace.seen
        self._usual_seen = seen if self._usual_seen is None else self._usual_seen + seen

    def extra_us(self, detours: Sequence[RouteTrace], cost_us: FloatArray) -> float:
        """Return what some detours cost more than the usual routes lately, in all."""
        if self._usual_seen is None:
            return 0.0
        usual_us = float(self._usual_seen @ cost_us) / max(self._usual_rows, 1)
        return sum(
            float(trace.seen @ cost_us) - usual_us * trace.entered_count for trace in detours
        )

    def adjust(self, operator: int, cost_us: FloatArray) -> None:
        """Set the share of the profiled operator by what detours and usual routes cost a row."""
        if self._budget is not None and self._seen is not None and self._usual_seen is not None:
            detour_us = float(self._seen @ cost_us) / max(self._rows, 1)
            usual_us = float(self._usual_seen @ cost_us) / max(self._usual_rows, 1)
            extra = max(detour_us / usual_us - 1.0, 1e-3) if usual_us else 1.0
            wanted = min(max(self._budget / extra, PROBABILITY_MIN), PROBABILITY_MAX)
            self.probability[operator] = 0.5 * self.probability[operator] + 0.5 * wanted
        self._reset()
