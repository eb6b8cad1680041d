"""Python functions by name, as queries call them."""

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
        As queries call it.
    function
        What is called.
    kind
        How: with one row, with pandas Series, with Arrow arrays.
    returns
        The type of its answer, as Spark names it.
    other_answers
        What Spark makes of an answer of another type: it is `null`, or it is `cast`.

    """

    name: str
    function: Callable[..., Any]
    kind: str
    returns: str
    other_answers: Literal["null", "cast"]

    def why_not(self, spec: PredicateSpec) -> str | None:
        """Say why the question cannot be asked; None if it can."""
        if spec.comparison == "" and self.returns == "boolean":
            return None
        if self.kind != "row":
            return "a vectorised function can only be asked for true: WHERE f(x)"
        if self.returns not in ANSWER_TYPES:
            return f"its answer is {self.returns}; only {', '.join(ANSWER_TYPES)} can be compared"
        if spec.comparison in ("", "not"):
            is_fit = self.returns == "boolean"
        elif isinstance(spec.constant, str):
            is_fit = self.returns == "string"
        else:
            is_fit = self.returns in ("int", "bigint", "double")
        return None if is_fit else f"its answer is {self.returns}"
