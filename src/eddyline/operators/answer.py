"""A Python function whose answer is compared with a constant, or negated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import BoolArray
from eddyline.operators.predicate import RowPredicate

_COMPARE = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
#: Types of answers that can be compared, as Spark names them.
ANSWER_TYPES: dict[str, tuple[pa.DataType, type]] = {
    "boolean": (pa.bool_(), bool),
    "int": (pa.int32(), int),
    "bigint": (pa.int64(), int),
    "double": (pa.float64(), float),
    "string": (pa.string(), str),
}
_NOT_CONVERTED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


class ComparedAnswer(RowPredicate):
    """Calls a function once a row and compares its answer.

    Answers are converted to the declared type as Spark converts those of a UDF.

    Parameters
    ----------
    name, columns, function
        As for `RowPredicate`.
    returns
        Declared type of the answer, one of `ANSWER_TYPES`.
    comparison
        `=`, `<>`, `<`, `<=`, `>`, `>=`, or `not`: the answer must be false.
    constant
        What the answer is compared with; unused with `not`.
    other_answers
        What an answer of another type becomes: `null`, or what it is when `cast`.

    Examples
    --------
    >>> from eddyline.operators import Batch, ColumnReader
    >>> batch = Batch([pa.array([1, 2, None])], [ColumnReader("a")])
    >>> half = ComparedAnswer("half", (0,), lambda a: a and a / 2, "double", ">=", 1)
    >>> half.evaluate(batch, None).passed
    array([False,  True, False])

    """

    def __init__(
        self,
        name: str,
        columns: tuple[int, ...],
        function: Callable[..., Any],
        returns: str,
        comparison: str,
        constant: int | float | str | None = None,
        other_answers: Literal["null", "cast"] = "cast",
    ) -> None:
        super().__init__(name, columns, function, other_answers)
        self._arrow_type, self._python_type = ANSWER_TYPES[returns]
        self._comparison, self._constant = comparison, constant

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
        if self._other_answers == "null":
            wanted = self._python_type
            plain = [answer if type(answer) is wanted else None for answer in answers]
            return pa.array(plain, self._arrow_type)
        try:
            return _as_spark_does(answers, self._arrow_type)
        except _NOT_CONVERTED:
            pass
        converted: list[Any] = []
        for position, answer in enumerate(answers):
            try:
                converted.append(_as_spark_does([answer], self._arrow_type)[0].as_py())
            except _NOT_CONVERTED as error:
                errors[position] = error
                converted.append(None)
        return pa.array(converted, self._arrow_type)


def _as_spark_does(answers: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(answers, kind)
    except _NOT_CONVERTED:
        return pa.array(answers).cast(kind)
