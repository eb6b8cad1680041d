"""Python functions that queries call by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from eddyline.errors import EngineError
from eddyline.operators.answer import ANSWER_TYPES, TESTS
from eddyline.operators.time_limit import STOPWATCH

#: Seconds that one batch of calls may take unless the user says otherwise.
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Function:
    """A registered Python function.

    Parameters
    ----------
    name
        Name in queries.
    function
        The callable itself.
    kind
        Calling convention: `row`, or one of the vectorised kinds of `VECTOR_PLANS`.
    returns
        Declared type of the answer, as Spark SQL writes it.
    other_answers
        What an answer of another type becomes, as in a Spark UDF: `null`, or the `cast` value.
    timeout_s
        Seconds that one batch of calls may take; None for no limit.
    spark_function
        The same function as Spark calls it, for SELECT; None if it was not registered with Spark.

    """

    name: str
    function: Callable[..., Any]
    kind: str
    returns: str
    other_answers: Literal["null", "cast"]
    timeout_s: float | None = TIMEOUT_S
    spark_function: Any = None

    def reason_not_testable(self, comparison: str, constant: object) -> str | None:
        """Return why a test of the answer is not possible; None if it is.

        Parameters
        ----------
        comparison
            "" to test for true, one of `TESTS`, the sign of a comparison, "in" or "not in".
        constant
            What the answer is compared with, a tuple for "in" and "not in"; else unused.

        Examples
        --------
        >>> score = Function("score", len, "row", "double", "cast")
        >>> score.reason_not_testable(">", 0.5) is None
        True
        >>> score.reason_not_testable("=", "high")
        'its answer is double, which cannot be compared with it; say what the function returns: \
engine.function("score", ..., returns="string")'

        """
        if comparison == "" and self.returns == "boolean":
            return None
        if self.kind != "row":
            return "a vectorised function can only be tested for true: WHERE f(x)"
        if self.returns not in ANSWER_TYPES:
            return f"its answer is {self.returns}; only {', '.join(ANSWER_TYPES)} can be compared"
        if comparison in ("is null", "is not null"):
            return None
        if comparison == "" or comparison in TESTS:
            is_testable = self.returns == "boolean"
        else:
            constants = constant if isinstance(constant, tuple) else (constant,)
            types = {isinstance(one, str) for one in constants if one is not None}
            suitable = ("string",) if True in types else ("int", "bigint", "double")
            is_testable = len(types) < 2 and self.returns in suitable
        if is_testable:
            return None
        if comparison == "" or comparison in TESTS:
            return f"its answer is {self.returns}, not boolean; compare it with a constant"
        suitable_type = "string" if True in types else "double"
        return (
            f"its answer is {self.returns}, which cannot be compared with it; say what the "
            f'function returns: engine.function("{self.name}", ..., returns="{suitable_type}")'
        )

    def reason_not_callable(self, arguments: int) -> str | None:
        """Return why it cannot be called with so many arguments; None if it can.

        Examples
        --------
        >>> Function("score", lambda a: a, "row", "double", "cast").reason_not_callable(2)
        'score is called with 2 arguments: too many positional arguments'

        """
        if self.kind.endswith("_iterator"):
            return None  # takes one iterator, whatever the number of columns
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # some built-in functions do not tell
            return None
        try:
            signature.bind(*[None] * arguments)
        except TypeError as error:
            times = "1 argument" if arguments == 1 else f"{arguments} arguments"
            return f"{self.name} is called with {times}: {error}"
        return None


def check_timeout(name: str, timeout_s: float | None) -> None:
    """Refuse a time limit that is not a number of seconds.

    Examples
    --------
    >>> check_timeout("score", 0)
    Traceback (most recent call last):
    ...
    eddyline.errors.EngineError: function 'score': timeout_s must be a number of seconds above 0, \
or None for no limit, not 0

    """
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if timeout_s is not None and not (is_number and 0 < timeout_s < float("inf")):
        raise EngineError(
            f"function {name!r}: timeout_s must be a number of seconds above 0, or None for no "
            f"limit, not {timeout_s!r}"
        )


def limited(
    name: str, function: Callable[..., Any], kind: str, timeout_s: float | None
) -> Callable[..., Any]:
    """Return a function with a time limit on each call, for Spark to call.

    Parameters
    ----------
    name
        Of the function, for the error.
    function, kind
        The function and its calling convention, as in `Function`.
    timeout_s
        Seconds that one call may take; for an iterator function, that one batch may take.

    Examples
    --------
    >>> limited("double", lambda a: 2 * a, "row", 60.0)(4)
    8
    >>> double_all = limited("d", lambda batches: (2 * b for b in batches), "arrow_iterator", 60.0)
    >>> list(double_all(iter([1, 2])))
    [2, 4]

    """
    if timeout_s is None:
        return function

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return STOPWATCH.call(name, timeout_s, function, *arguments)

    @functools.wraps(function)
    def iterate(batches: Iterator[Any]) -> Iterator[Any]:
        end = object()
        # Spark makes the batches: what that takes is not the function's time.
        given = iter(lambda: STOPWATCH.wait(next, batches, end), end)
        answers = iter(function(given))
        yield from iter(lambda: STOPWATCH.call(name, timeout_s, next, answers, end), end)

    return iterate if kind.endswith("_iterator") else call
