"""Deeply nested queries: run again with more room for recursion.

The parser and the steps are recursive. Queries that a program wrote, with fifty brackets or a
thousand ANDs, exceed Python's usual limit although they are legal.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from eddyline.errors import QueryError

Result = TypeVar("Result")

RECURSION_MAX = 100_000
STACK_BYTES = 512 * 2**20
_limit_lock = threading.Lock()


def with_deep_recursion(compute: Callable[[], Result]) -> Result:
    """Return what a function returns; if its recursion is too deep, give it more room.

    Raises
    ------
    QueryError
        If even that is not enough.

    Examples
    --------
    >>> def depth(n):
    ...     return 0 if n == 0 else 1 + depth(n - 1)
    >>> with_deep_recursion(lambda: depth(5_000))
    5000

    """
    try:
        return compute()
    except RecursionError:
        pass
    with _limit_lock:
        return _compute_in_deep_thread(compute)


def _compute_in_deep_thread(compute: Callable[[], Result]) -> Result:
    outcome: list[Result] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(compute())
        except BaseException as error:
            raised.append(error)

    limit, stack_bytes = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
    sys.setrecursionlimit(max(limit, RECURSION_MAX))
    try:
        thread = threading.Thread(target=run, name="eddyline-deep-query")
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(stack_bytes)
    if not raised:
        return outcome[0]
    if isinstance(raised[0], RecursionError):
        raise QueryError(
            "the query is nested too deeply to be read; split it into several queries, or write "
            "long lists as IN"
        )
    raise raised[0]
