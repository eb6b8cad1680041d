"""The interface between the fabric and an operator that judges rows.

A filter answers each row with one boolean. An operator that produces several rows for one, such as
the probe of a join, needs two extensions here: `Outcome` gets the number of rows produced for each
row asked about (`passed` is then "at least one"), and `Operator` a method that returns the produced
rows. Orders continue to depend on `passed` and cost; the operators that must come before a probe
are the `precedence` of `eddyline.ordering.static`.
"""

from __future__ import annotations

import abc
from typing import NamedTuple

from eddyline.arrays import BoolArray, Rows
from eddyline.operators.batch import Batch


class Outcome(NamedTuple):
    """The answer of an operator about some rows of a batch.

    Parameters
    ----------
    passed
        One boolean for each row asked about: True if the operator lets it through.
    errors
        Exceptions of the rows that could not be judged, by position in the rows asked about; None
        if there are none. Such a row counts as passed, so that another operator may still drop it.

    """

    passed: BoolArray
    errors: dict[int, Exception] | None = None


class Operator(abc.ABC):
    """Judges rows of a batch: lets them through or drops them.

    Parameters
    ----------
    name
        The name in reports and errors.
    columns
        Positions, in the batch, of the columns it reads.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from eddyline.operators import ColumnReader
    >>> class NotNull(Operator):
    ...     def evaluate(self, batch, rows):
    ...         values = batch.arrow(self.columns[0], rows)
    ...         return Outcome(values.is_valid().to_numpy(zero_copy_only=False))
    >>> batch = Batch([pa.array([1, None, 3])], [ColumnReader("a")])
    >>> NotNull("a is not null", (0,)).evaluate(batch, np.array([1, 2])).passed
    array([False,  True])

    """

    def __init__(self, name: str, columns: tuple[int, ...]) -> None:
        self.name = name
        self.columns = columns

    @abc.abstractmethod
    def evaluate(self, batch: Batch, rows: Rows | None) -> Outcome:
        """Judge rows.

        Parameters
        ----------
        batch
            The rows, by column.
        rows
            Positions in the batch, ascending; None for all rows.

        Raises
        ------
        Exception
            Of an operator that judges many rows in one call, if that call fails: it cannot know
            which row caused it. The caller finds out by asking again about fewer rows.
        """

    def close(self) -> None:  # noqa: B027  most operators hold nothing
        """Release what a task opened; called at the end of each task."""
