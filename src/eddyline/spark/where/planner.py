"""From predicates and a DataFrame to the plan of a router and the UDF that runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType

from eddyline.errors import InvalidPredicateError
from eddyline.fabric import RouterOptions
from eddyline.fabric.knowledge import Knowledge
from eddyline.fabric.tactics.choose import RoutingPolicy
from eddyline.operators.shared_value import SharedValue, position_of_shared
from eddyline.spark.common.columns import quoted
from eddyline.spark.common.lookup_keys import common_type, plan_lookup
from eddyline.spark.common.operator_plans import OperatorPlan, VerdictPlan, plan_function
from eddyline.spark.common.predicates import (
    LookupPredicate,
    NativePredicate,
    Predicate,
    PythonPredicate,
    SharedArgument,
)
from eddyline.spark.where.plan import RouterPlan
from eddyline.spark.where.worker import run_task

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ColumnOrName = TypeVar("ColumnOrName", "str", "Column")


class RouterPlanner:
    """Finds out which columns must cross into Python, and their types.

    Parameters
    ----------
    df
        The DataFrame to filter.
    predicates
        Those that the router is to evaluate, in written order.

    """

    def __init__(self, df: DataFrame, predicates: Sequence[Predicate]) -> None:
        self._df = df
        counted = Counter(df.columns)
        self._known = {f.name: f.dataType for f in df.schema if counted[f.name] == 1}
        self._by_name: dict[str, int] = {}
        self._attributes: dict[str, int] = {}
        self._columns: list[str | Column] = []
        self._labels: list[str] = []
        self._types: list[DataType] = []
        self._shared: dict[int, tuple[SharedArgument, SharedValue]] = {}
        self._operators = tuple(self._plan_operator(predicate) for predicate in predicates)
        self._pinned = tuple(i for i, p in enumerate(predicates) if not p.deterministic)
        if not self._columns:  # a UDF without columns would not know how many rows there are
            self._column_index(F.lit(True), "no columns")

    @property
    def arguments(self) -> list[str | Column]:
        """The columns to call the router with, each once."""
        return self._columns

    @property
    def argument_names(self) -> list[str]:
        """Those of the predicates' arguments that are plain columns."""
        return list(self._by_name)

    def add_attributes(self, attributes: Mapping[str, Column]) -> None:
        """Let columns cross that may classify rows, unless they cross anyway."""
        for name, column in attributes.items():
            if name not in self._by_name:
                self._by_name[name] = len(self._columns)
                self._columns.append(column)
                self._labels.append(name)
                self._types.append(self._known[name])
            self._attributes[name] = self._by_name[name]

    def plan(
        self,
        where_id: str,
        build: int,
        policy: RoutingPolicy,
        options: RouterOptions,
        knowledge: tuple[Knowledge, ...],
    ) -> RouterPlan:
        """Return the plan to pickle into the UDF."""
        conf = self._df.sparkSession.conf
        return RouterPlan(
            where_id,
            build,
            self._operators,
            self._pinned,
            policy,
            options,
            tuple(zip(self._labels, self._types, strict=True)),
            str(conf.get("spark.sql.session.timeZone")),
            conf.get("spark.sql.execution.pyspark.binaryAsBytes", "true") == "true",
            knowledge,
            self._attributes,
            tuple(value for _, value in self._shared.values()),
        )

    def _plan_operator(self, predicate: Predicate) -> OperatorPlan:
        if isinstance(predicate, PythonPredicate):
            columns = tuple(self._argument_index(c, predicate.name) for c in predicate.columns)
            return plan_function(
                predicate.kind,
                predicate.name,
                columns,
                predicate.function,
                predicate.other_answers,
            )
        if isinstance(predicate, NativePredicate):
            column = self._column_index(predicate.column(), predicate.name)
            return VerdictPlan(predicate.name, (column,))
        return self._plan_lookup(predicate)

    def _plan_lookup(self, predicate: LookupPredicate) -> OperatorPlan:
        columns, types = [], []
        for column, key in zip(predicate.columns, predicate.keys, strict=True):
            own = self._type_of(self._resolve(column), column, predicate.name)
            common = common_type(own, predicate.table.schema[key].dataType, predicate.name, column)
            compared = column if common == own else F.col(self._resolve(column)).cast(common)
            columns.append(self._column_index(compared, predicate.name))
            types.append(common)
        return plan_lookup(predicate, types, tuple(columns))

    def _argument_index(self, argument: str | Column | SharedArgument, predicate: str) -> int:
        if not isinstance(argument, SharedArgument):
            return self._column_index(argument, predicate)
        if id(argument) not in self._shared:
            columns = tuple(self._argument_index(c, predicate) for c in argument.columns)
            value = SharedValue(argument.name, columns, argument.function)
            self._shared[id(argument)] = (argument, value)
        return position_of_shared(list(self._shared).index(id(argument)))

    def _column_index(self, column: str | Column, predicate: str) -> int:
        # Only names can be recognised by their text: two Columns may print alike and differ.
        if isinstance(column, str) and column in self._by_name:
            return self._by_name[column]
        label = column if isinstance(column, str) else str(column)
        resolved = self._resolve(column)
        self._types.append(self._type_of(resolved, label, predicate))
        self._columns.append(resolved)
        self._labels.append(label)
        if isinstance(column, str):
            self._by_name[column] = len(self._labels) - 1
        return len(self._labels) - 1

    def _resolve(self, column: ColumnOrName) -> ColumnOrName:
        # A column whose name contains a dot takes precedence over a field of a struct. (A name, not
        # a Column, which would take calls of the JVM.)
        return quoted(column) if isinstance(column, str) and column in self._known else column

    def _type_of(self, column: str | Column, label: str, predicate: str) -> DataType:
        if label in self._known:
            return self._known[label]
        try:
            return self._df.select(column).schema[0].dataType
        except AnalysisException as error:
            raise InvalidPredicateError(
                f"predicate {predicate!r}: no column {label!r}; the DataFrame has "
                f"{', '.join(self._df.columns)} ({str(error).splitlines()[0]})"
            ) from error


def make_router_udf(plan: RouterPlan) -> Callable[..., Column]:
    """Return the one iterator Arrow UDF of a `where`: columns in, verdicts out."""

    def eddyline_router(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return run_task(plan, batches)

    udf = F.arrow_udf(eddyline_router, returnType=BinaryType())
    # Not deterministic, because of its notes: Spark must neither repeat it nor move it.
    routed: Callable[..., Column] = udf.asNondeterministic()
    return routed
