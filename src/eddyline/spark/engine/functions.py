"""Python functions by name, as queries call them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import BoolArray
from eddyline.operators import Operator, RowPredicate
from eddyline.sql.query import PredicateSpec

_COMPARE = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_ARROW_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
}
_PYTHON_TYPES = {"boolean": bool, "int": int, "bigint": int, "double": float, "string": str}
_NOT_CONVERTED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


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
        if self.returns not in _ARROW_TYPES:
            return f"its answer is {self.returns}; only {', '.join(_ARROW_TYPES)} can be compared"
        if spec.comparison in ("", "not"):
            is_fit = self.returns == "boolean"
        elif isinstance(spec.constant, str):
            is_fit = self.returns == "string"
        else:
            is_fit = self.returns in ("int", "bigint", "double")
        return None if is_fit else f"its answer is {self.returns}"


class JudgedAnswer(RowPredicate):
    """A function whose answer is compared with a constant, or negated.

    Answers are converted to the declared type as Spark converts those of a UDF.

    Examples
    --------
    >>> from eddyline.operators import Batch, ColumnReader
    >>> batch = Batch([pa.array([1, 2, None])], [ColumnReader("a")])
    >>> half = Function("half", lambda a: a and a / 2, "row", "double", "cast")
    >>> spec = PredicateSpec("half(a) >= 1", "", "half", ("a",), ">=", 1)
    >>> JudgedAnswer("half", (0,), half, spec).evaluate(batch, None).passed
    array([False,  True, False])

    """

    def __init__(
        self, name: str, columns: tuple[int, ...], function: Function, spec: PredicateSpec
    ) -> None:
        super().__init__(name, columns, function.function, function.other_answers)
        self._returns = function.returns
        self._comparison, self._constant = spec.comparison, spec.constant

    def _to_passed(self, answers: list[Any], errors: dict[int, Exception]) -> BoolArray:
        values = self._converted(answers, errors)
        if self._comparison == "not":
            passed = pc.invert(values)
        else:
            passed = _COMPARE[self._comparison](values, self._constant)
            if pa.types.is_floating(values.type):  # NaN is larger than any number
                larger = self._comparison in (">", ">=", "<>")
                passed = pc.if_else(pc.is_nan(values), larger, passed)
        kept: BoolArray = pc.fill_null(passed, False).to_numpy(zero_copy_only=False)
        return np.array(kept)

    def _converted(self, answers: list[Any], errors: dict[int, Exception]) -> pa.Array:
        kind = _ARROW_TYPES[self._returns]
        if self._other_answers == "null":
            wanted = _PYTHON_TYPES[self._returns]
            return pa.array([a if type(a) is wanted else None for a in answers], kind)
        try:
            return _as_spark_does(answers, kind)
        except _NOT_CONVERTED:
            pass
        converted: list[Any] = []
        for position, answer in enumerate(answers):
            try:
                converted.append(_as_spark_does([answer], kind)[0].as_py())
            except _NOT_CONVERTED as error:
                errors[position] = error
                converted.append(None)
        return pa.array(converted, kind)


def _as_spark_does(answers: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(answers, kind)
    except _NOT_CONVERTED:
        return pa.array(answers).cast(kind)


@dataclass(frozen=True)
class FunctionPlan:
    """How to make the operator of a function that is asked about rows; pickled into the UDF."""

    name: str
    columns: tuple[int, ...]
    function: Function
    spec: PredicateSpec

    def make(self) -> Operator:
        """Return the operator."""
        return JudgedAnswer(self.name, self.columns, self.function, self.spec)
