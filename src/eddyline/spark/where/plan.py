"""The plan of a `where`: everything a worker needs to make its router. Pickled into the UDF."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql.types import DataType

from eddyline.fabric import RouterOptions
from eddyline.fabric.knowledge import Knowledge
from eddyline.fabric.tactics.choose import RoutingPolicy
from eddyline.operators import SharedValue
from eddyline.spark.common.operator_plans import OperatorPlan


@dataclass(frozen=True)
class RouterPlan:
    """How to make the router of a `where` for one DataFrame.

    Parameters
    ----------
    where_id
        Identifies the `where`.
    build
        Index of the DataFrame that it was applied to, counting from 1. A worker keeps its router
        for the same build; the router of a later build starts from what that one has learnt.
    operators, pinned, policy, options
        As for `Router`.
    columns
        Names and types of the columns that cross into Python.
    timezone, binary_as_bytes
        Session settings that matter for converting values.
    knowledge
        What was known when the plan was built; empty for the first build.
    attributes
        Columns that may classify rows: names, and positions among `columns`.
    shared
        Values that predicates share.

    """

    where_id: str
    build: int
    operators: tuple[OperatorPlan, ...]
    pinned: tuple[int, ...]
    policy: RoutingPolicy
    options: RouterOptions
    columns: tuple[tuple[str, DataType], ...]
    timezone: str
    binary_as_bytes: bool
    knowledge: tuple[Knowledge, ...] = ()
    attributes: dict[str, int] = field(default_factory=dict)
    shared: tuple[SharedValue, ...] = ()
