"""Python functions that queries call by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from eddyline.operators.answer import ANSWER_TYPES


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

    """

    name: str
    function: Callable[..., Any]
    kind: str
    returns: str
    other_answers: Literal["null", "cast"]

    def reason_not_testable(self, comparison: str, constant: object) -> str | None:
        """Return why a test of the answer is not possible; None if it is.

        Parameters
        ----------
        comparison
            "" to test for true, "not" to test for false, or the sign of a comparison.
        constant
            What the answer is compared with; unused for "" and "not".

        Examples
        --------
        >>> score = Function("score", len, "row", "double", "cast")
        >>> score.reason_not_testable(">", 0.5) is None
        True
        >>> score.reason_not_testable("=", "high")
        'its answer is double'

        """
        if comparison == "" and self.returns == "boolean":
            return None
        if self.kind != "row":
            return "a vectorised function can only be tested for true: WHERE f(x)"
        if self.returns not in ANSWER_TYPES:
            return f"its answer is {self.returns}; only {', '.join(ANSWER_TYPES)} can be compared"
        if comparison in ("", "not"):
            is_testable = self.returns == "boolean"
        elif isinstance(constant, str):
            is_testable = self.returns == "string"
        else:
            is_testable = self.returns in ("int", "bigint", "double")
        return None if is_testable else f"its answer is {self.returns}"
