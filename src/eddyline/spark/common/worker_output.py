"""How a worker ends whose output nobody reads any more.

`show`, `take`, `limit` and `isEmpty` have enough after some rows: the JVM then closes the
connection to the worker, which may still be writing. PySpark's daemon prints a traceback for it,
with any UDF that answers with more than a buffer holds. Nothing is wrong and nothing is lost, so a
worker that runs a router ends without the traceback (docs/decisions/0027).
"""

from __future__ import annotations

import sys
import traceback
from types import FrameType
from typing import Any

_UNREAD = (BrokenPipeError, ConnectionResetError)


class _QuietTraceback:
    """The module `traceback`, for PySpark's daemon: silent about a reader that has gone."""

    def __getattr__(self, name: str) -> Any:
        return getattr(traceback, name)

    def print_exc(self) -> None:
        """Print the exception that is being handled, unless it says that nobody reads."""
        if not isinstance(sys.exc_info()[1], _UNREAD):
            traceback.print_exc()


def end_quietly_when_unread() -> bool:
    """Let this worker process end without a traceback if the JVM stops reading its output.

    Only what PySpark's daemon prints is affected, not what functions of users print. Returns
    False, and changes nothing, in a process that PySpark's daemon did not start.

    Examples
    --------
    >>> end_quietly_when_unread()  # not in a worker
    False

    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        names = frame.f_globals
        is_daemon = frame.f_code.co_name == "manager" and "worker" in names
        if is_daemon and names.get("traceback") in (traceback, _quiet):
            names["traceback"] = _quiet
            return True
        frame = frame.f_back
    return False


_quiet = _QuietTraceback()
