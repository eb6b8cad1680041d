"""The plan that travels to workers: plain data, pickled into the UDF of a micro-batch.

`worker.py` runs it. Nothing here is imported from the SQL layer: what a query asks is already split
into the parts that an eddy shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql.types import DataType

from eddyline.fabric.shared.learnt import LearntOperator
from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators.domain import Domain
from eddyline.ordering import Policy
from eddyline.spark.common.operator_plans import OperatorPlan


@dataclass(frozen=True)
class QueryChanges:
    """How the queries over one stream changed from one version of the plan to the next.

    Parameters
    ----------
    version
        The version with the change.
    dropped
        Slots of dropped queries. To be applied first: added queries may reuse them.
    added
        Added queries, by slot.

    """

    version: int
    dropped: tuple[int, ...]
    added: Mapping[int, SharedQuery]


@dataclass(frozen=True)
class QueryHistory:
    """The queries over one stream: all of them at one version, and what changed since.

    Parameters
    ----------
    base_version
        Version of the plan that the base stands for.
    base
        The queries at that version, by slot, packed: most workers have them already.
    changes
        Later changes, oldest first.

    """

    base_version: int
    base: bytes
    changes: tuple[QueryChanges, ...] = ()


@dataclass(frozen=True)
class NativeAnswers:
    """Answers to native conditions, which cross as one array column.

    Parameters
    ----------
    position
        Of the array among the columns that cross.
    keys
        The conditions, in the order of the array's elements.

    """

    position: int
    keys: tuple[str, ...]


@dataclass(frozen=True)
class StreamPlan:
    """Everything a worker needs for the queries over one stream.

    Parameters
    ----------
    domains
        For each column that may be compared with constants, its domain.
    queries
        The queries, by slot.
    columns
        Names and types of the columns that cross into Python, in their order.
    values
        Positions of the columns that are compared with constants, by name.
    operators
        How to make each shared predicate, by key.
    native
        Where the answers to native conditions are; None without such conditions.
    learnt
        What a new eddy begins with: by operator, in the order in which rows visit them.

    """

    domains: Mapping[str, Domain]
    queries: QueryHistory
    columns: tuple[tuple[str, DataType], ...]
    values: Mapping[str, int]
    operators: Mapping[str, OperatorPlan]
    native: NativeAnswers | None = None
    learnt: Mapping[str, LearntOperator] = field(default_factory=dict)


@dataclass(frozen=True)
class EddyPlan:
    """One version of the plan of an engine: an eddy for each stream.

    Parameters
    ----------
    run_id
        Identifies the planner; workers keep their eddies as long as it is the same.
    version
        Counts the plans of this planner, from 1.
    streams
        In the order of their numbers.
    policy
        Decides the order of operators; every eddy gets a copy of its own.
    timezone, binary_as_bytes
        Session settings that affect the conversion of values.
    seed
        For whatever the policy draws.

    """

    run_id: str
    version: int
    streams: tuple[StreamPlan, ...]
    policy: Policy
    timezone: str
    binary_as_bytes: bool
    seed: int | None = None
