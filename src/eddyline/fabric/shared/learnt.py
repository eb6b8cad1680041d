"""What an eddy has learnt of an operator, in a form that travels to eddies in other processes."""

from __future__ import annotations

from typing import NamedTuple


class LearntOperator(NamedTuple):
    """What was learnt of one operator.

    Parameters
    ----------
    cost_us
        What a visit of a row costs; None if no row visited it.
    taken, finished
        Rows that it took, and those of them that needed no other operator, as tickets count them;
        0 under other policies.

    """

    cost_us: float | None = None
    taken: float = 0.0
    finished: float = 0.0
