"""A Python function whose answer is compared with constants, or tested for NULL and false."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import BoolArray
from eddyline.operators.domain import Constant
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
#: Tests without a constant; each returns NULL or false for an answer that does not pass.
TESTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "not": pc.invert,
    "is null": pc.is_null,
    "is not null": pc.is_valid,
    "is not true": lambda answers: pc.invert(pc.fill_null(answers, False)),
    "is not false": lambda answers: pc.fill_null(answers, True),
}
_INT64 = range(-(2**63), 2**63)
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
        `=`, `<>`, `<`, `<=`, `>`, `>=`, `in`, `not in`, or one of `TESTS`; `not` means that the
        answer must be false.
    constant
        What the answer is compared with: a tuple with `in` and `not in`, in which None stands for
        NULL; unused with `TESTS`.
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
        constant: Constant | tuple[Constant | None, ...] | None = None,
        other_answers: Literal["null", "cast"] = "cast",
    ) -> None:
        super().__init__(name, columns, function, other_answers)
        self._arrow_type, self._python_type = ANSWER_TYPES[returns]
        self._test = _make_test(comparison, constant, self._arrow_type)

    def _to_passed(self, answers: list[Any], errors: dict[int, Exception]) -> BoolArray:
        passed = self._test(self._converted(answers, errors))
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


def _make_test(
    comparison: str, constant: Constant | tuple[Constant | None, ...] | None, kind: pa.DataType
) -> Callable[[pa.Array], pa.Array]:
    """Return the function from answers to NULL, true or false."""
    if comparison in TESTS:
        return TESTS[comparison]
    if isinstance(constant, tuple):
        return _make_list_test(constant, comparison == "not in", kind)
    compare = _COMPARE[comparison]
    if pa.types.is_floating(kind):
        number, is_larger = float(constant or 0), comparison in (">", ">=", "<>")
        # NaN is larger than any number.
        return lambda answers: pc.if_else(pc.is_nan(answers), is_larger, compare(answers, number))
    if isinstance(constant, int) and constant not in _INT64:
        constant = Decimal(constant)
    return lambda answers: compare(answers, constant)


def _make_list_test(
    constants: tuple[Constant | None, ...], is_negated: bool, kind: pa.DataType
) -> Callable[[pa.Array], pa.Array]:
    """Return the test of IN or NOT IN; all items are compared in one type, as Spark does."""
    if is_negated and None in constants:  # x <> NULL is unknown
        return lambda answers: pa.repeat(False, len(answers))
    values: list[Any] = [constant for constant in constants if constant is not None]
    if pa.types.is_integer(kind) and not any(isinstance(value, float) for value in values):
        kind = pa.int64()
        values = [int(value) for value in values if value == int(value)]
        values = [value for value in values if value in _INT64]
    elif kind != pa.string():
        kind = pa.float64()
        values = [float(value) for value in values]
    items = pa.array(values, kind)

    def test(answers: pa.Array) -> pa.Array:
        is_item = pc.is_in(answers.cast(kind, safe=False), value_set=items)
        if is_negated:
            return pc.and_(pc.invert(is_item), pc.is_valid(answers))
        return is_item

    return test


def _as_spark_does(answers: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(answers, kind)
    except _NOT_CONVERTED:
        return pa.array(answers).cast(kind)
