"""The line of a Spark error that says what happened."""

from __future__ import annotations

_SIGNS = ("No space left", "Permission denied", "Error: ", "Exception: ")
_LENGTH_MAX = 300


def first_cause(error: BaseException) -> str:
    """Return the most telling line of an error, without Java and Python stack traces.

    Examples
    --------
    >>> first_cause(RuntimeError("Job aborted\\n  at line 3\\n  ValueError: seven"))
    'ValueError: seven'

    """
    lines = [line.strip() for line in _message(error).splitlines() if line.strip()]
    for sign in _SIGNS:
        for line in lines:
            if sign in line and "py4j" not in line and "Driver stacktrace" not in line:
                return line[:_LENGTH_MAX]
    return (lines or [type(error).__name__])[0][:_LENGTH_MAX]


def worker_message(error: BaseException, kind: type[Exception]) -> str | None:
    """Return what a worker said with an error of some class; None if it raised no such error.

    Parameters
    ----------
    error
        What Spark made of it, with the traceback of the worker.
    kind
        The class.

    Examples
    --------
    >>> from eddyline.errors import EngineError, MissingSparkError
    >>> error = RuntimeError("OSError: full\\n\\neddyline.errors.EngineError: cannot write a.stem")
    >>> worker_message(error, EngineError)
    'cannot write a.stem'
    >>> worker_message(error, MissingSparkError) is None
    True

    """
    sign = f"{kind.__module__}.{kind.__qualname__}: "
    lines = [line.strip() for line in _message(error).splitlines()]
    return next((line.removeprefix(sign) for line in lines if line.startswith(sign)), None)


def is_worker_death(error: BaseException) -> bool:
    """Whether a job failed because a Python worker ended, rather than raised an error.

    Examples
    --------
    >>> is_worker_death(RuntimeError("SparkException: Python worker exited unexpectedly (crashed)"))
    True

    """
    return "Python worker exited unexpectedly" in _message(error)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # it is code of a user
        return "(its message cannot be shown)"
