"""Errors are held back per row, and forgotten when another predicate drops the row.

That is what makes reordering safe: a predicate may raise on rows that, in the written order, it
would never have been shown. Only an error of a row that nothing drops is acted on.
"""

from __future__ import annotations

import numpy as np

from eddyline.arrays import Rows
from eddyline.errors import InvalidPredicateError, PredicateFailedError, describe_error
from eddyline.operators import Batch, Operator, Outcome


class HeldErrors:
    """The errors of one batch.

    A predicate that judges single rows names the rows at fault. One that judges many in a call
    cannot: all rows of the failed call are put off, the other predicates thin them out, and only
    what survives is asked about again, in ever smaller calls until the rows at fault stand alone.
    """

    def __init__(self) -> None:
        self._by_row: dict[int, tuple[Operator, Exception]] = {}
        self._put_off: list[tuple[Operator, Rows]] = []
        #: Of each failed call that was asked about again: rows dropped then, and rows at fault.
        self.judged_again: list[tuple[Operator, int, int]] = []
        #: Number of rows that no predicate dropped and on which one raised.
        self.at_fault = 0

    def __bool__(self) -> bool:
        return bool(self._by_row or self._put_off)

    def ask(self, operator: Operator, batch: Batch, rows: Rows | None) -> tuple[Outcome, int]:
        """Let the operator judge the rows; return its outcome and how many rows failed.

        Of a failed call for many rows, none is counted yet: `settle` finds out which.
        """
        try:
            outcome = operator.evaluate(batch, rows)
        except InvalidPredicateError:
            raise
        except Exception:
            asked = np.arange(batch.rows) if rows is None else rows
            self._put_off.append((operator, asked))
            return Outcome(np.ones(len(asked), dtype=bool)), 0
        if outcome.errors is None:
            return outcome, 0
        for position, error in outcome.errors.items():
            row = position if rows is None else int(rows[position])
            self._by_row.setdefault(row, (operator, error))
        return outcome, len(outcome.errors)

    def settle(self, batch: Batch, alive: Rows, on_error: str) -> Rows:
        """Act on the errors of rows that are still alive; return the rows that are kept."""
        for number, (operator, rows) in enumerate(self._put_off, start=1):
            again = np.intersect1d(rows, alive, assume_unique=True)
            # The first row at fault is enough if there is no other call left to drop it.
            first_only = on_error == "raise" and number == len(self._put_off)
            dropped = self._isolate(operator, batch, again, first_only)
            alive = np.setdiff1d(alive, dropped, assume_unique=True)
        still_alive = set(alive.tolist())
        at_fault = [row for row in self._by_row if row in still_alive]
        self.at_fault = len(at_fault)
        if not at_fault or on_error == "keep":
            return alive
        if on_error == "drop":
            return np.setdiff1d(alive, np.array(at_fault), assume_unique=True)
        operator, error = self._by_row[min(at_fault)]
        raise PredicateFailedError(
            operator.name,
            describe_error(error),
            batch.describe_row(min(at_fault), operator.columns),
        ) from error

    def _isolate(self, operator: Operator, batch: Batch, rows: Rows, first_only: bool) -> Rows:
        """Note the rows at fault; return the rows dropped."""
        outcome = judge_in_parts(operator, batch, rows, first_only)
        for position, error in (outcome.errors or {}).items():
            self._by_row.setdefault(int(rows[position]), (operator, error))
        dropped = rows[~outcome.passed]
        self.judged_again.append((operator, len(dropped), len(outcome.errors or {})))
        return dropped


def judge_in_parts(
    operator: Operator, batch: Batch, rows: Rows, first_only: bool = False
) -> Outcome:
    """Let an operator judge rows; if a call for many fails, find the rows at fault in fewer.

    With `first_only`, what comes after the first row at fault is not looked at.
    """
    if len(rows) == 0:
        return Outcome(np.zeros(0, dtype=bool))
    try:
        return operator.evaluate(batch, rows)
    except BaseException as error:
        if len(rows) == 1:
            # Whatever a function raises, also what ends a process, concerns its row alone.
            plain = error if isinstance(error, Exception) else RuntimeError(describe_error(error))
            return Outcome(np.ones(1, dtype=bool), {0: plain})
    middle = len(rows) // 2
    first = judge_in_parts(operator, batch, rows[:middle], first_only)
    if first_only and first.errors:
        return Outcome(
            np.append(first.passed, np.ones(len(rows) - middle, dtype=bool)), first.errors
        )
    second = judge_in_parts(operator, batch, rows[middle:], first_only)
    errors = dict(first.errors or {})
    errors |= {middle + at: error for at, error in (second.errors or {}).items()}
    return Outcome(np.concatenate([first.passed, second.passed]), errors or None)
