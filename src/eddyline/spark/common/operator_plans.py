"""How each kind of operator is described in a plan; a plan is data and pickled into a UDF.

`make_operator`, which runs in the worker, is the only place that knows how to build one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from eddyline.operators import (
    ArrowPredicate,
    Lookup,
    LookupTable,
    Operator,
    PandasPredicate,
    PerBatch,
    RowPredicate,
)
from eddyline.operators.answer import ComparedAnswer
from eddyline.operators.domain import Constant
from eddyline.operators.time_limit import LimitedOperator


@dataclass(frozen=True)
class OperatorPlan:
    """Base of all operator plans.

    Parameters
    ----------
    name
        Of the operator, for reports and errors.
    columns
        Positions of its arguments among the columns that cross into Python.

    """

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class RowPlan(OperatorPlan):
    """A function that is called once a row; see `RowPredicate`."""

    function: Callable[..., Any]
    other_answers: Literal["refuse", "null", "cast"] = "refuse"


@dataclass(frozen=True)
class ComparedAnswerPlan(OperatorPlan):
    """A function whose answer is compared with a constant; see `ComparedAnswer`."""

    function: Callable[..., Any]
    returns: str
    comparison: str
    constant: Constant | tuple[Constant | None, ...] | None = None
    other_answers: Literal["null", "cast"] = "cast"


@dataclass(frozen=True)
class LimitedPlan(OperatorPlan):
    """A function with a time limit; see `LimitedOperator`."""

    operator: OperatorPlan
    limit_s: float


@dataclass(frozen=True)
class ArrowPlan(OperatorPlan):
    """A function of Arrow arrays, called once a batch."""

    function: Callable[..., Any]


@dataclass(frozen=True)
class ArrowIteratorPlan(OperatorPlan):
    """A generator over batches of Arrow arrays."""

    function: Callable[..., Any]


@dataclass(frozen=True)
class PandasPlan(OperatorPlan):
    """A function of pandas Series, called once a batch."""

    function: Callable[..., Any]


@dataclass(frozen=True)
class PandasIteratorPlan(OperatorPlan):
    """A generator over batches of pandas Series."""

    function: Callable[..., Any]


@dataclass(frozen=True)
class LookupPlan(OperatorPlan):
    """A semi- or anti-join with a small table.

    Parameters
    ----------
    keys
        The table's distinct keys, as an Arrow IPC stream.
    anti
        Keep the rows without a match instead.

    """

    keys: bytes
    anti: bool = False


@dataclass(frozen=True)
class VerdictPlan(OperatorPlan):
    """A native condition that Spark has evaluated already: the column is the answer."""


#: The plan of each kind of vectorised function, by the name that predicates give it.
VECTOR_PLANS: dict[str, Callable[[str, tuple[int, ...], Callable[..., Any]], OperatorPlan]] = {
    "arrow": ArrowPlan,
    "arrow_iterator": ArrowIteratorPlan,
    "pandas": PandasPlan,
    "pandas_iterator": PandasIteratorPlan,
}


def plan_function(
    kind: str,
    name: str,
    columns: tuple[int, ...],
    function: Callable[..., Any],
    other_answers: Literal["refuse", "null", "cast"],
) -> OperatorPlan:
    """Return the plan of a Python function that answers true or false.

    Examples
    --------
    >>> plan_function("row", "even", (0,), lambda a: a % 2 == 0, "refuse").columns
    (0,)

    """
    if kind == "row":  # vectorised answers are always cast, as Spark does
        return RowPlan(name, columns, function, other_answers)
    return VECTOR_PLANS[kind](name, columns, function)


@functools.singledispatch
def make_operator(plan: OperatorPlan) -> Operator:
    """Return the operator that a plan describes; runs in the worker."""
    raise NotImplementedError(f"no operator for {type(plan).__name__}")


@make_operator.register
def _(plan: RowPlan) -> Operator:
    return RowPredicate(plan.name, plan.columns, plan.function, plan.other_answers)


@make_operator.register
def _(plan: ComparedAnswerPlan) -> Operator:
    return ComparedAnswer(
        plan.name,
        plan.columns,
        plan.function,
        plan.returns,
        plan.comparison,
        plan.constant,
        plan.other_answers,
    )


@make_operator.register
def _(plan: LimitedPlan) -> Operator:
    return LimitedOperator(make_operator(plan.operator), plan.limit_s)


@make_operator.register
def _(plan: ArrowPlan) -> Operator:
    return ArrowPredicate(plan.name, plan.columns, plan.function)


@make_operator.register
def _(plan: ArrowIteratorPlan) -> Operator:
    return ArrowPredicate(plan.name, plan.columns, PerBatch(plan.function, pa.concat_arrays))


@make_operator.register
def _(plan: PandasPlan) -> Operator:
    return PandasPredicate(plan.name, plan.columns, plan.function)


@make_operator.register
def _(plan: PandasIteratorPlan) -> Operator:
    import pandas as pd

    return PandasPredicate(plan.name, plan.columns, PerBatch(plan.function, pd.concat))


@make_operator.register
def _(plan: LookupPlan) -> Operator:
    table = pa.ipc.open_stream(plan.keys).read_all()
    return Lookup(plan.name, plan.columns, LookupTable(table.columns), plan.anti)


@make_operator.register
def _(plan: VerdictPlan) -> Operator:
    return ArrowPredicate(plan.name, plan.columns, lambda answer: answer)
