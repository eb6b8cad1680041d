"""Every error that Eddyline raises on purpose, so that callers can catch them by kind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping


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
    """A predicate raised on a row that no other predicate drops, and `on_error` is "raise".

    It is raised in a worker, and Spark raises an exception of its own for it on the driver:
    `el.error_of(exception)` returns this one.

    Parameters
    ----------
    predicate
        Name of the predicate.
    error
        Type and message of what it raised.
    row
        The values it was called with, by name of the column, each as `repr` shows it and cut
        to a readable length.

    Examples
    --------
    >>> print(PredicateFailedError("fifth", "IndexError: too short", {"text": "'x'", "n": "1"}))
    predicate 'fifth' raised IndexError: too short
    on the row: text='x'
                n=1
    No other predicate drops this row. Handle the value in the function, or pass ...

    """

    def __init__(self, predicate: str, error: str, row: Mapping[str, str]) -> None:
        super().__init__(predicate, error, dict(row))
        self.predicate = predicate
        self.error = error
        self.row = dict(row)

    def __str__(self) -> str:
        values = [f"{_label(name)}={value}" for name, value in self.row.items()]
        return (
            f"predicate {self.predicate!r} raised {self.error}{_ON_THE_ROW}"
            f"{_NEXT_VALUE.join(values)}{_ADVICE}. Handle the value in the function, or pass "
            f'on_error="drop" or on_error="keep" to el.where.'
        )


class TimeLimitError(EddylineError, TimeoutError):
    """A registered function took longer than its time limit."""


class QueryError(EddylineError, ValueError):
    """The SQL of a query is wrong, or uses something that is not supported."""


class EngineError(EddylineError, RuntimeError):
    """An engine cannot do what was asked of it, or had to stop."""


_ON_THE_ROW = "\non the row: "
_NEXT_VALUE = "\n" + " " * (len(_ON_THE_ROW) - 1)
_ADVICE = "\nNo other predicate drops this row"
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_FAILED = re.compile(
    rf"^eddyline\.errors\.PredicateFailedError: predicate ({_QUOTED}) raised (.*?){_ADVICE}",
    re.DOTALL | re.MULTILINE,
)
_INVALID = re.compile(r"^eddyline\.errors\.InvalidPredicateError: (.+)$", re.MULTILINE)
_VALUE = re.compile(rf"({_QUOTED}|[^=]*)=(.*)", re.DOTALL)


def error_of(exception: BaseException) -> PredicateFailedError | InvalidPredicateError | None:
    """Return the error of Eddyline that an exception of Spark stands for.

    What a predicate raises, it raises in a worker. Spark then raises an exception of its own on
    the driver, in classic sessions, in Connect and from a streaming query, whose text
    holds the text of ours.

    Parameters
    ----------
    exception
        What an action or a streaming query raised.

    Returns
    -------
    A `PredicateFailedError` with the name of the predicate, what it raised and the values of
    the row; an `InvalidPredicateError` if its answers cannot be used; None for anything else.

    Examples
    --------
    >>> import eddyline as el
    >>> docs = spark.createDataFrame([(1, "x")], "id int, text string")
    >>> f = el.where(el.udf(lambda text: text[4] == "z", "text", name="fifth"))
    >>> try:
    ...     docs.transform(f).collect()
    ... except Exception as exception:
    ...     error = el.error_of(exception)
    >>> error.predicate, error.error, error.row
    ('fifth', 'IndexError: string index out of range', {'text': "'x'"})
    >>> el.error_of(ValueError("something else")) is None
    True

    """
    if not isinstance(exception, BaseException):
        raise TypeError(
            f"el.error_of needs an exception, not {type(exception).__name__}; pass the one that "
            f"the action raised"
        )
    for each in _chain(exception):
        if isinstance(each, PredicateFailedError | InvalidPredicateError):
            return each
        text = str(each)
        failed = _FAILED.search(text)
        if failed is not None:
            error, _, values = failed[2].rpartition(_ON_THE_ROW)
            return PredicateFailedError(ast.literal_eval(failed[1]), error, _read_row(values))
        invalid = _INVALID.search(text)
        if invalid is not None:
            return InvalidPredicateError(invalid[1])
    return None


def _chain(exception: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what caused it, and so on."""
    seen: set[int] = set()
    while exception is not None and id(exception) not in seen:
        seen.add(id(exception))
        yield exception
        exception = exception.__cause__ or exception.__context__


def _label(name: str) -> str:
    """Return the name of a column so that the first `=` behind it is not part of it."""
    return repr(name) if re.search(r"""^['"]|[=\n]""", name) else name


def _read_row(values: str) -> dict[str, str]:
    row = {}
    for part in values.split(_NEXT_VALUE):
        if matched := _VALUE.fullmatch(part):
            name, value = matched.groups()
            row[ast.literal_eval(name) if name[:1] in ("'", '"') else name] = value
    return row


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
