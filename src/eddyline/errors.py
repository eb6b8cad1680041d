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


class QueryError(EddylineError, ValueError):
    """The SQL of a query is wrong, or uses something that is not supported."""


class EngineError(EddylineError, RuntimeError):
    """An engine cannot do what was asked of it, or had to stop."""
