"""A costly value that several predicates need: computed once a row, when the first one needs it.

Parsing a JSON document is an example. The value is like a column of the batch that is filled row by
row as predicates reach it; it never exists as an Arrow array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eddyline.arrays import Rows
from eddyline.errors import describe_error


@dataclass(frozen=True)
class SharedValue:
    """How a shared value is computed.

    Parameters
    ----------
    name
        For errors.
    columns
        Positions of its arguments: of columns in the batch, or of other shared values.
    function
        Called with one value for each argument; None stands for NULL.

    """

    name: str
    columns: tuple[int, ...]
    function: Callable[..., Any]


@dataclass(frozen=True)
class FailedValue:
    """Stands for the value of a row on which computing it raised."""

    error: Exception


def position_of_shared(number: int) -> int:
    """Return the position that stands for a shared value among the columns of an operator.

    Positions of columns count from 0 upwards, those of shared values from -1 downwards.
    """
    return -1 - number


class SharedValues:
    """The shared values of one batch, as far as they have been computed.

    Parameters
    ----------
    value
        How they are computed.
    rows
        Number of rows in the batch.

    Examples
    --------
    >>> values = SharedValues(SharedValue("half", (0,), lambda a: 12 // a), rows=3)
    >>> column = [1, 0, 3]
    >>> def arguments(positions, rows):
    ...     return [[column[row] for row in rows]]
    >>> values.of_rows(np.array([0, 1]), arguments)
    [12, FailedValue(error=ZeroDivisionError(...))]
    >>> values.of_rows(None, arguments)  # computes the last only
    [12, FailedValue(error=ZeroDivisionError(...)), 4]

    """

    def __init__(self, value: SharedValue, rows: int) -> None:
        self._value = value
        self._values = np.empty(rows, dtype=object)
        self._is_computed = np.zeros(rows, dtype=bool)
        #: Whether computing raised on some row.
        self.has_failed = False

    def of_rows(
        self,
        rows: Rows | None,
        arguments: Callable[[Sequence[int], Rows], Sequence[Sequence[Any]]],
    ) -> list[Any]:
        """Return the values of rows; those not known yet are computed.

        Parameters
        ----------
        rows
            Positions in the batch; None for all.
        arguments
            Returns the values of some columns in some rows.

        """
        wanted = np.arange(len(self._values)) if rows is None else rows
        missing = wanted[~self._is_computed[wanted]]
        if len(missing):
            columns = arguments(self._value.columns, missing)
            calls = zip(*columns, strict=True) if columns else [()] * len(missing)
            computed = [self._compute(values) for values in calls]
            self._values[missing] = np.fromiter(computed, dtype=object, count=len(computed))
            self._is_computed[missing] = True
        found: list[Any] = self._values[wanted].tolist()
        return found

    def _compute(self, values: Sequence[Any]) -> Any:
        for value in values:
            if isinstance(value, FailedValue):  # another shared value that this one needs
                self.has_failed = True
                return value
        try:
            return self._value.function(*values)
        except (Exception, SystemExit) as error:
            self.has_failed = True
            if isinstance(error, SystemExit | StopIteration):  # these would end more than the call
                return FailedValue(RuntimeError(describe_error(error)))
            return FailedValue(error)


def raising(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function; called with a failed value, it raises the error instead."""

    def call(*values: Any) -> Any:
        for value in values:
            if isinstance(value, FailedValue):
                raise value.error
        return function(*values)

    return call
