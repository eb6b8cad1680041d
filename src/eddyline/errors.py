"""Every error that Eddyline raises on purpose, so that callers can catch them by kind."""

from __future__ import annotations


class EddylineError(Exception):
    """Base of all errors raised by Eddyline. The message names the problem and the fix."""


class MissingSparkError(EddylineError, ImportError):
    """A part of Eddyline that runs on Spark is used, and PySpark is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "PySpark is not installed, and this part of Eddyline runs on it: "
            'pip install "eddyline[spark]"'
        )


class InvalidPredicateError(EddylineError, ValueError):
    """A predicate cannot be used as given: wrong kind, arity, return type or column."""


class WrongAnswerError(EddylineError, TypeError):
    """A predicate answered a row with something other than a boolean or None."""


class InvalidPolicyError(EddylineError, ValueError):
    """The policy is unknown, or its parameters contradict each other."""


class LookupTableError(EddylineError, ValueError):
    """The table of a lookup is too large, streaming, or has keys of the wrong type."""


class PredicateFailedError(EddylineError, RuntimeError):
    """A predicate raised on a row that no other predicate drops, and `on_error` is "raise"."""


class TimeLimitError(EddylineError, TimeoutError):
    """A registered function took longer than its time limit."""


class QueryError(EddylineError, ValueError):
    """The SQL of a query is wrong, or uses something that is not supported."""


class EngineError(EddylineError, RuntimeError):
    """An engine cannot do what was asked of it, or had to stop."""


ERROR_LENGTH_MAX = 2_000


def describe_error(error: BaseException) -> str:
    """Return the type and the message of an error that user code raised.

    The message is cut to a length that can be stored, and may itself be impossible to get.

    Examples
    --------
    >>> describe_error(ValueError("seven"))
    'ValueError: seven'
    >>> class Broken(Exception):
    ...     def __str__(self):
    ...         raise RuntimeError
    >>> describe_error(Broken())
    'Broken: (its message cannot be shown)'

    """
    try:
        message = str(error)
    except BaseException:
        message = "(its message cannot be shown)"
    described = f"{type(error).__name__}: {message}"
    if len(described) > ERROR_LENGTH_MAX:
        described = described[: ERROR_LENGTH_MAX - 1] + "…"
    return described
