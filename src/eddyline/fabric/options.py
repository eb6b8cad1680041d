"""How a router treats errors, and how much it may spend on learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

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
        if self.budget is not None and not 0 <= self.budget < 1:
            raise EddylineError(f"budget is {self.budget}; it must be at least 0 and below 1")
        if self.chunk_rows < 1:
            raise EddylineError(f"chunk_rows is {self.chunk_rows}; it must be at least 1")
        if self.seed is not None and self.seed < 0:
            raise EddylineError(f"seed is {self.seed}; it must not be negative")
