"""Every error that Eddyline raises on purpose, so that a caller can catch them by kind."""

from __future__ import annotations


class EddylineError(Exception):
    """Base of all errors raised by Eddyline. The message names what was wrong and the fix."""


class InvalidPredicateError(EddylineError, ValueError):
    """A predicate cannot be used as it was given: wrong kind, arity, return type or column."""


class WrongAnswerError(EddylineError, TypeError):
    """A predicate answered a row with something that is no boolean."""


class InvalidPolicyError(EddylineError, ValueError):
    """The policy is unknown, or its parameters contradict each other."""


class LookupTableError(EddylineError, ValueError):
    """The table of a lookup cannot be shipped: too large, streaming, or keys that do not fit."""


class PredicateFailedError(EddylineError, RuntimeError):
    """A predicate raised on a row that no other predicate drops, and `on_error` is "raise"."""


class QueryError(EddylineError, ValueError):
    """A query cannot be taken: its SQL is wrong, or asks for what is not supported."""


class EngineError(EddylineError, RuntimeError):
    """An engine cannot do what it was asked, or had to stop."""
