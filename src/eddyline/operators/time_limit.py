"""Time limits for functions that users wrote.

A call starts no timer of its own: while limited functions are in use, a signal beats a few times
per limit, and only the beat compares times. So a call that is fast enough costs next to nothing. A
beat raises in a function that exceeded its limit. C code that never returns to Python cannot be
interrupted this way; for that, `faulthandler` ends the process unless beats postpone it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from eddyline.arrays import Rows
from eddyline.errors import TimeLimitError
from eddyline.operators.batch import Batch
from eddyline.operators.operator import Operator, Outcome

BEATS_PER_LIMIT = 4
#: Seconds beyond twice the limit after which a process that does not react is ended.
GRACE_S = 5.0
_CAN_SIGNAL = hasattr(signal, "setitimer")


class _Expired(BaseException):
    """Raised within a function; not an `Exception`, which the function might catch."""


class Stopwatch:
    """Limits the duration of calls, in the main thread of a process; elsewhere there is no limit.

    Examples
    --------
    >>> Stopwatch().call("double", 60.0, lambda value: 2 * value, 4)
    8
    >>> Stopwatch().call("sleep", 0.1, time.sleep, 5)
    Traceback (most recent call last):
    ...
    eddyline.errors.TimeLimitError: the function 'sleep' took longer than its limit of 0.1 s ...

    """

    def __init__(self) -> None:
        self._started: float | None = None
        self._limit_s = 0.0
        self._beat_s = 0.0  # 0 while no signals are sent
        self._longest_s = 0.0  # of the limits since signals are sent
        self._handler_before: Any = None

    def call(self, name: str, limit_s: float, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function; raise `TimeLimitError` if it takes longer than its limit."""
        if not _CAN_SIGNAL or threading.current_thread() is not threading.main_thread():
            return function(*arguments)
        before = self._started, self._limit_s
        self._started, self._limit_s = time.monotonic(), limit_s
        if not 0 < self._beat_s <= limit_s / BEATS_PER_LIMIT:
            self._start_beats(limit_s)
        elif limit_s > self._longest_s:
            self._postpone_end()
        try:
            try:
                return function(*arguments)
            finally:
                self._started, self._limit_s = before
        except _Expired:
            raise TimeLimitError(
                f"the function {name!r} took longer than its limit of {limit_s:g} s for one batch "
                f"of calls; make it faster, or register it with a larger timeout_s"
            ) from None

    def wait(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call something within a limited call whose duration does not count."""
        was_running, self._started = self._started is not None, None
        try:
            return function(*arguments)
        finally:
            if was_running:
                self._started = time.monotonic()

    def _start_beats(self, limit_s: float) -> None:
        handler = signal.signal(signal.SIGALRM, self._beat)
        if self._beat_s == 0:
            self._handler_before = handler
        self._beat_s = limit_s / BEATS_PER_LIMIT
        signal.setitimer(signal.ITIMER_REAL, self._beat_s, self._beat_s)
        self._postpone_end()

    def _beat(self, signum: int, frame: FrameType | None) -> None:
        if self._started is None:
            self._stop_beats()
        elif time.monotonic() - self._started >= self._limit_s:
            raise _Expired  # at every further beat too, in case the function catches it
        else:
            self._postpone_end()

    def _stop_beats(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._handler_before or signal.SIG_DFL)
        faulthandler.cancel_dump_traceback_later()
        self._beat_s = self._longest_s = 0.0

    def _postpone_end(self) -> None:
        self._longest_s = max(self._longest_s, self._limit_s)
        if sys.__stderr__ is None:
            return
        with contextlib.suppress(ValueError, RuntimeError, OSError):  # it may be closed
            faulthandler.dump_traceback_later(
                2 * self._longest_s + GRACE_S, exit=True, file=sys.__stderr__
            )


#: The stopwatch of this process: there is one signal for all functions.
STOPWATCH = Stopwatch()


class LimitedOperator(Operator):
    """An operator whose evaluation has a time limit.

    A function that exceeded it is not called again: all rows asked about then carry the error.

    Parameters
    ----------
    operator
        What judges the rows.
    limit_s
        Largest duration of one evaluation, in seconds.

    """

    def __init__(self, operator: Operator, limit_s: float) -> None:
        super().__init__(operator.name, operator.columns)
        self._operator = operator
        self._limit_s = limit_s
        self._error: TimeLimitError | None = None

    def evaluate(self, batch: Batch, rows: Rows | None) -> Outcome:
        """Judge rows within the limit."""
        if self._error is None:
            try:
                outcome: Outcome = STOPWATCH.call(
                    self.name, self._limit_s, self._operator.evaluate, batch, rows
                )
                return outcome
            except TimeLimitError as error:
                self._error = error
        count = batch.rows if rows is None else len(rows)
        errors: dict[int, Exception] = dict.fromkeys(range(count), self._error)
        return Outcome(np.ones(count, dtype=bool), errors)

    def close(self) -> None:
        """Close the operator."""
        self._operator.close()
