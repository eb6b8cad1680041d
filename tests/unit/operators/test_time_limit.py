"""Time limits: what takes too long is interrupted, whatever it does; the rest notices nothing."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import TimeLimitError
from eddyline.fabric.shared.eddy import SharedEddy
from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators import ArrowPredicate, Batch, ColumnReader, PandasPredicate, RowPredicate
from eddyline.operators.time_limit import GRACE_S, LimitedOperator, Stopwatch

LIMIT_S = 0.2


def catch_once() -> None:
    """Go on after the first interruption."""
    with contextlib.suppress(BaseException):
        time.sleep(30)
    time.sleep(30)


@pytest.mark.parametrize(
    "function",
    [lambda: time.sleep(30), lambda: [None for _ in iter(int, 1)], catch_once],
    ids=["waits", "computes", "catches"],
)
def test_a_function_that_takes_too_long_is_interrupted(function: Any) -> None:
    began = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"'slow' took longer than its limit of 0.2 s"):
        Stopwatch().call("slow", LIMIT_S, function)
    assert time.monotonic() - began < 5


def test_the_limit_is_of_one_call_and_not_of_what_happens_between() -> None:
    watch = Stopwatch()
    for _ in range(4):
        watch.call("short", LIMIT_S, time.sleep, LIMIT_S / 2)
        time.sleep(LIMIT_S / 2)
    watch.call("waits", LIMIT_S, lambda: [watch.wait(time.sleep, LIMIT_S) for _ in range(3)])
    assert watch.call("waits", LIMIT_S, watch.wait, int, "7") == 7


def test_a_signal_beats_four_times_per_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[tuple[float, ...]] = []
    monkeypatch.setattr(signal, "setitimer", lambda which, *seconds: beats.append(seconds))
    watch = Stopwatch()
    watch.call("one", 8.0, int)
    watch.call("another", 60.0, int)  # served by the beats of the shorter limit
    watch._stop_beats()
    assert beats == [(2.0, 2.0), (0,)]


def test_a_shorter_limit_holds_while_a_longer_one_is_watched() -> None:
    watch, before = Stopwatch(), signal.getsignal(signal.SIGALRM)
    watch.call("patient", 60.0, int)
    with pytest.raises(TimeLimitError, match="hasty"):
        watch.call("hasty", LIMIT_S, time.sleep, 30)
    watch._stop_beats()
    assert signal.getsignal(signal.SIGALRM) == before


def test_a_process_is_not_ended_before_twice_the_longest_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends: list[float] = []
    monkeypatch.setattr(
        "eddyline.operators.time_limit.faulthandler.dump_traceback_later",
        lambda seconds, **_: ends.append(seconds),
    )
    watch = Stopwatch()
    for limit_s in (0.5, 40.0, 1.0, 60.0, 40.0):
        watch.call("f", limit_s, int)
    assert ends == [1 + GRACE_S, 80 + GRACE_S, 120 + GRACE_S]
    watch._stop_beats()


def test_signals_end_when_nothing_is_called_and_the_handler_of_before_is_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    watch = Stopwatch()
    watch.call("short", LIMIT_S, int)
    assert signal.getsignal(signal.SIGALRM) != before
    time.sleep(LIMIT_S)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_handler_that_was_set_between_two_calls_is_back_after_the_second() -> None:
    before = signal.getsignal(signal.SIGALRM)
    watch = Stopwatch()
    try:
        for handler in (before, signal.SIG_IGN):
            signal.signal(signal.SIGALRM, handler)
            watch.call("short", LIMIT_S, int)
            watch._stop_beats()
            assert signal.getsignal(signal.SIGALRM) == handler
    finally:
        signal.signal(signal.SIGALRM, before)


def test_other_threads_have_no_limit() -> None:
    answers: list[Any] = []
    watch = Stopwatch()
    thread = threading.Thread(target=lambda: answers.append(watch.call("f", 0.01, int, "7")))
    thread.start()
    thread.join()
    assert answers == [7]


def test_code_that_never_returns_to_python_ends_its_process() -> None:
    script = (
        "import collections, itertools, eddyline.operators.time_limit as t; t.GRACE_S = 0.1; "
        "t.STOPWATCH.call('c', 0.1, collections.deque, itertools.repeat(0), 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], timeout=30, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"Timeout" in done.stderr


KINDS = {
    "row": lambda function: RowPredicate("slow", (0,), function),
    "arrow": lambda function: ArrowPredicate("slow", (0,), function),
    "pandas": lambda function: PandasPredicate("slow", (0,), function),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_predicate_fails_for_its_queries_and_is_not_called_again(kind: str) -> None:
    calls: list[int] = []

    def slow(values: Any) -> Any:
        calls.append(1)
        time.sleep(30)
        return values

    eddy = SharedEddy({}, seed=0)
    eddy.add({0: SharedQuery(1, needs=("slow",)), 1: SharedQuery(2)})
    eddy.bind({}, {"slow": LimitedOperator(KINDS[kind](slow), LIMIT_S)})
    batch = Batch([pa.array([1, 2, 3])], [ColumnReader("a")])
    for _ in range(2):
        matches = eddy.run(batch)
        assert list(matches.failures) == [1]
        assert "TimeLimitError: the function 'slow' took longer" in matches.failures[1]
        assert matches.rows[matches.numbers == 2].tolist() == [0, 1, 2]
    assert len(calls) == 1


def test_a_fast_predicate_answers_as_without_a_limit() -> None:
    limited = LimitedOperator(RowPredicate("even", (0,), lambda a: a % 2 == 0), 60.0)
    batch = Batch([pa.array([1, 2, 3, 4])], [ColumnReader("a")])
    assert limited.evaluate(batch, np.array([1, 2])).passed.tolist() == [True, False]
    assert (limited.name, limited.columns) == ("even", (0,))
