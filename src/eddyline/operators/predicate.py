"""Python predicates of three kinds: called with one row, with pandas Series, with Arrow arrays.

A predicate keeps a row if it answers True. False and NULL drop it, as in SQL.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.arrays import BoolArray, Rows
from eddyline.errors import InvalidPredicateError, WrongAnswerError, describe_error
from eddyline.operators.batch import Batch
from eddyline.operators.operator import Operator, Outcome
from eddyline.operators.shared_value import raising

_NOT_BOOLEAN = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


class RowPredicate(Operator):
    """A function that is called once for each row.

    Parameters
    ----------
    name, columns
        As for every operator.
    function
        Called with one value for each column; None stands for NULL.
    other_answers
        What to do with an answer that is not a boolean: `refuse` it, since a function that answers
        with a match object would otherwise silently drop every row; take it as `null`, as pickled
        Spark UDFs do; or `cast` it, as Arrow-optimised Spark UDFs do.

    Examples
    --------
    >>> from eddyline.operators import ColumnReader
    >>> batch = Batch([pa.array([1, None, 3])], [ColumnReader("a")])
    >>> RowPredicate("big", (0,), lambda a: a > 2).evaluate(batch, None)
    Outcome(passed=array([False,  True,  True]), errors={1: TypeError(...)})

    """

    def __init__(
        self,
        name: str,
        columns: tuple[int, ...],
        function: Callable[..., Any],
        other_answers: Literal["refuse", "null", "cast"] = "refuse",
    ) -> None:
        super().__init__(name, columns)
        self._function = function
        self._other_answers = other_answers

    def evaluate(self, batch: Batch, rows: Rows | None) -> Outcome:
        """Call the function on each row; an exception concerns its row alone."""
        count = batch.rows if rows is None else len(rows)
        answers: list[Any] = []
        errors: dict[int, Exception] = {}
        calls = self._calls(batch, rows, count)  # a generator would not survive an exception
        while len(answers) < count:
            try:
                # On an exception the answers so far stay, and `calls` continues behind the row.
                answers.extend(calls)
                if len(answers) < count:  # the function raised StopIteration: `extend` ended
                    raise RuntimeError("the function raised StopIteration")
            except (Exception, SystemExit) as error:
                if isinstance(error, SystemExit):
                    errors[len(answers)] = RuntimeError(describe_error(error))
                else:
                    errors[len(answers)] = error
                answers.append(None)
        passed = self._to_passed(answers, errors)
        if not errors:
            return Outcome(passed)
        passed[list(errors)] = True  # undecided: another operator may still drop the row
        return Outcome(passed, errors)

    def _calls(self, batch: Batch, rows: Rows | None, count: int) -> Any:
        if not self.columns:
            return itertools.starmap(self._function, itertools.repeat((), count))
        values = [batch.objects(column, rows) for column in self.columns]
        has_failed = batch.has_failed_values(self.columns)
        return map(raising(self._function) if has_failed else self._function, *values)

    def _to_passed(self, answers: list[Any], errors: dict[int, Exception]) -> BoolArray:
        try:
            return _nulls_drop(pa.array(answers, type=pa.bool_()))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            pass
        # Row by row, so that what becomes of a row does not depend on its neighbours.
        passed = np.zeros(len(answers), dtype=bool)
        for position, answer in enumerate(answers):
            try:
                passed[position] = self._is_true(answer)
            except WrongAnswerError as error:
                errors[position] = error
        return passed

    def _is_true(self, answer: Any) -> bool:
        if answer is None or isinstance(answer, bool | np.bool_):
            return bool(answer)
        if self._other_answers == "null":
            return False
        if self._other_answers == "cast":
            with contextlib.suppress(*_NOT_BOOLEAN):
                return bool(pa.array([answer]).cast(pa.bool_())[0].as_py())
        raise WrongAnswerError(
            f"it returned {type(answer).__name__} ({answer!r:.80}), not a boolean; let it return "
            f"bool(...), or None for NULL"
        )


class VectorPredicate(Operator):
    """A function that judges many rows in one call. Base of the pandas and Arrow kinds."""

    def __init__(self, name: str, columns: tuple[int, ...], function: Callable[..., Any]) -> None:
        super().__init__(name, columns)
        self._function = function

    def close(self) -> None:
        """Close a function that holds something open from call to call."""
        close = getattr(self._function, "close", None)
        if callable(close):
            close()

    def _check_length(self, answer: Any, expected: int) -> None:
        try:
            length = len(answer)
        except TypeError:
            raise InvalidPredicateError(
                f"predicate {self.name!r} returned {type(answer).__name__}; it must return one "
                f"boolean for each row it is given, as a Series or an array"
            ) from None
        if length != expected:
            raise InvalidPredicateError(
                f"predicate {self.name!r} returned {length:,} values for {expected:,} rows; it "
                f"must return exactly one for each row it is given"
            )

    def _wrong_type(self, actual: object) -> WrongAnswerError:
        return WrongAnswerError(
            f"it returned values of type {actual}, not booleans; compare or cast them inside the "
            f"function"
        )


class ArrowPredicate(VectorPredicate):
    """A function from Arrow arrays to a boolean Arrow array.

    Examples
    --------
    >>> from eddyline.operators import ColumnReader
    >>> batch = Batch([pa.array([1, None, 3])], [ColumnReader("a")])
    >>> ArrowPredicate("big", (0,), lambda a: pc.greater(a, 2)).evaluate(batch, None).passed
    array([False, False,  True])

    """

    def evaluate(self, batch: Batch, rows: Rows | None) -> Outcome:
        """Call the function once, on all rows asked about."""
        count = batch.rows if rows is None else len(rows)
        answer = self._function(*[batch.arrow(column, rows) for column in self.columns])
        self._check_length(answer, count)
        if isinstance(answer, pa.ChunkedArray):
            answer = answer.combine_chunks()
        if not isinstance(answer, pa.Array):
            raise self._wrong_type(type(answer).__name__)
        if not pa.types.is_boolean(answer.type):
            try:
                answer = answer.cast(pa.bool_(), safe=True)  # as Spark does with an Arrow UDF
            except _NOT_BOOLEAN:
                raise self._wrong_type(answer.type) from None
        return Outcome(_nulls_drop(answer))


class PandasPredicate(VectorPredicate):
    """A function from pandas Series to a boolean pandas Series.

    Examples
    --------
    >>> from eddyline.operators import ColumnReader
    >>> batch = Batch([pa.array([1, 2, 3])], [ColumnReader("a")])
    >>> PandasPredicate("big", (0,), lambda a: a > 2).evaluate(batch, None).passed
    array([False, False,  True])

    """

    def evaluate(self, batch: Batch, rows: Rows | None) -> Outcome:
        """Call the function once, on all rows asked about."""
        count = batch.rows if rows is None else len(rows)
        answer = self._function(*[batch.pandas(column, rows) for column in self.columns])
        self._check_length(answer, count)
        if getattr(answer, "ndim", 1) != 1:
            raise self._wrong_type(f"{type(answer).__name__} with {answer.ndim} dimensions")
        dtype = getattr(answer, "dtype", None)
        if dtype == np.dtype(bool):  # the common case: nothing to convert, no NULL possible
            return Outcome(np.asarray(answer))
        try:
            return Outcome(_nulls_drop(self._to_booleans(answer)))
        except _NOT_BOOLEAN:
            raise self._wrong_type(dtype or type(answer).__name__) from None

    @staticmethod
    def _to_booleans(answer: Any) -> pa.Array:
        try:
            return pa.array(answer, type=pa.bool_(), from_pandas=True)
        except pa.ArrowInvalid:  # as Spark does with a pandas UDF: "true" is a boolean too
            return pa.array(answer, from_pandas=True).cast(pa.bool_())


def _nulls_drop(answer: pa.BooleanArray) -> BoolArray:
    if answer.null_count:
        answer = pc.fill_null(answer, False)
    passed: BoolArray = answer.to_numpy(zero_copy_only=False)
    return passed if passed.flags.writeable else passed.copy()
