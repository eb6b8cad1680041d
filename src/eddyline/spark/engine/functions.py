"""Python functions that queries call by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from eddyline.operators.answer import ANSWER_TYPES, TESTS


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
            "" to test for true, one of `TESTS`, the sign of a comparison, "in" or "not in".
        constant
            What the answer is compared with, a tuple for "in" and "not in"; else unused.

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
        if comparison in ("is null", "is not null"):
            return None
        if comparison == "" or comparison in TESTS:
            is_testable = self.returns == "boolean"
        else:
            constants = constant if isinstance(constant, tuple) else (constant,)
            types = {isinstance(one, str) for one in constants if one is not None}
            suitable = ("string",) if True in types else ("int", "bigint", "double")
            is_testable = len(types) < 2 and self.returns in suitable
        return None if is_testable else f"its answer is {self.returns}"
