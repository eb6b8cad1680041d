"""What the fabric asks of an operator."""

from __future__ import annotations

import abc
from typing import NamedTuple

from eddyline.arrays import BoolArray, Rows
from eddyline.operators.batch import Batch


class Outcome(NamedTuple):
    """The verdict on some rows of a batch.

    `passed` has one entry for each row asked about. `errors` holds, by position in that same
    list of rows, the exceptions of the rows that could not be judged; they count as passed, so
    that another operator may still drop them.
    """

    passed: BoolArray
    errors: dict[int, Exception] | None = None


class Operator(abc.ABC):
    """Judges rows of a batch.

    Parameters
    ----------
    name
        How reports and errors call it.
    columns
        Positions, in the batch, of the columns it reads.

    """

    def __init__(self, name: str, columns: tuple[int, ...]) -> None:
        self.name = name
        self.columns = columns

    @abc.abstractmethod
    def evaluate(self, batch: Batch, rows: Rows | None) -> Outcome:
        """Judge the given rows, ascending; None stands for all of them.

        An operator that judges many rows in one call raises if that call fails: it cannot tell
        which row was at fault. The caller finds out by asking again about fewer rows.
        """

    def close(self) -> None:  # noqa: B027  most operators hold nothing
        """Let go of what a task opened; called at the end of each task."""
