"""How a router treats errors, and how much it may spend on learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from eddyline.errors import EddylineError

OnError = Literal["raise", "drop", "keep"]

CHUNK_ROWS = 4_096


@dataclass(frozen=True)
class RouterOptions:
    """Options of a router.

    Parameters
    ----------
    on_error
        What becomes of a row on which a predicate raised and which no other drops.
    budget
        Time for profiling, as a share of the time inside predicates. None: unlimited.
    chunk_rows
        Larger batches are cut, so that drift is detected within one chunk. Chunks are smaller
        still, down to 256 rows, where predicates are expensive, and up to four times as large
        after a long time without a decision.
    costs_us
        Cost of each predicate, in microseconds a row. None: measured. With given costs and a seed,
        a run is repeatable to the last decision, unless a class search runs out of time.
    seed
        For everything random. None: different each time.

    """

    on_error: OnError = "raise"
    budget: float | None = 0.01
    chunk_rows: int = CHUNK_ROWS
    costs_us: tuple[float, ...] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.on_error not in get_args(OnError):
            raise EddylineError(
                f"on_error is {self.on_error!r}; it must be 'raise', 'drop' or 'keep'"
            )
        is_share = isinstance(self.budget, int | float) and 0 <= self.budget < 1
        if self.budget is not None and not is_share:
            raise EddylineError(
                f"budget is {self.budget!r}; it must be a number from 0 to below 1, such as "
                f"0.01 for 1 %, or None for no limit"
            )
        if self.chunk_rows < 1:
            raise EddylineError(f"chunk_rows is {self.chunk_rows}; it must be at least 1")
        if self.seed is not None and not (
            isinstance(self.seed, int | np.integer) and self.seed >= 0
        ):
            raise EddylineError(f"seed is {self.seed!r}; it must be a whole number, not below 0")
