"""Python functions by name, as queries call them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eddyline.sql import PredicateSpec

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "tinyint": (int,),
    "smallint": (int,),
    "int": (int,),
    "bigint": (int,),
    "double": (float,),
    "string": (str,),
}


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
    registered
        What Spark knows under the name, for use in SELECT and in conditions of Spark's own.

    """

    name: str
    function: Callable[..., Any]
    kind: str
    returns: str
    registered: Any

    def can_judge(self, spec: PredicateSpec) -> bool:
        """Say whether Eddyline can ask the question itself, on the rows that need it only."""
        if spec.comparison in ("", "not"):
            return self.returns == "boolean" and (spec.comparison == "" or self.kind == "row")
        wanted = _PYTHON_TYPES.get(self.returns, ())
        is_number = isinstance(spec.constant, int | float)
        comparable = str not in wanted if is_number else wanted == (str,)
        return self.kind == "row" and bool(wanted) and bool not in wanted and comparable

    def judging(self, spec: PredicateSpec) -> Callable[..., Any]:
        """Return a function that answers the predicate's question about a row.

        An answer of another type than declared is NULL, as for a UDF of Spark's.
        """
        if spec.comparison == "":
            return self.function
        return _Judge(self.function, _PYTHON_TYPES[self.returns], spec.comparison, spec.constant)


@dataclass(frozen=True)
class _Judge:
    function: Callable[..., Any]
    wanted: tuple[type, ...]
    comparison: str
    constant: Any

    def __call__(self, *values: Any) -> bool | None:
        answer = self.function(*values)
        if not isinstance(answer, self.wanted) or (
            isinstance(answer, bool) and bool not in self.wanted
        ):
            return None
        if self.comparison == "not":
            return not answer
        if isinstance(answer, float) and math.isnan(answer):  # NaN is larger than any number
            return self.comparison in (">", ">=", "<>")
        return _COMPARE[self.comparison](answer, self.constant)
