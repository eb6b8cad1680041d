"""Python functions that queries call by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from eddyline.operators.answer import ANSWER_TYPES
from eddyline.sql.query import PredicateSpec


@dataclass(frozen=True)
class Function:
    """A registered function.

    Parameters
    ----------
    name
        Its name in queries.
    function
        The function itself.
    kind
        How it is called: with the values of one row, with pandas Series, with Arrow arrays.
    returns
        The type of its answer, as Spark names it.
    other_answers
        What becomes of an answer of another type: it is replaced by `null`, or it is `cast`.

    """

    name: str
    function: Callable[..., Any]
    kind: str
    returns: str
    other_answers: Literal["null", "cast"]

    def why_not(self, spec: PredicateSpec) -> str | None:
        """Return why the function cannot serve as this predicate; None if it can."""
        if spec.comparison == "" and self.returns == "boolean":
            return None
        if self.kind != "row":
            return "the answer of a vectorised function cannot be compared: write WHERE f(x)"
        if self.returns not in ANSWER_TYPES:
            return f"its answer is {self.returns}; only {', '.join(ANSWER_TYPES)} can be compared"
        if spec.comparison in ("", "not"):
            is_fit = self.returns == "boolean"
        elif isinstance(spec.constant, str):
            is_fit = self.returns == "string"
        else:
            is_fit = self.returns in ("int", "bigint", "double")
        return None if is_fit else f"its answer is {self.returns}"
