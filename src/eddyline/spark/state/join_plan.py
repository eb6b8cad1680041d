"""The plan of a micro-batch's joins: plain data, pickled into the function that workers run."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from eddyline.index.cost import DEFAULT_COSTS, UnitCosts
from eddyline.index.tuning_options import TuningOptions
from eddyline.joins.plan import JoinQuery, Role
from eddyline.ordering import Policy
from eddyline.spark.state.counted_rows import CountedRows
from eddyline.spark.state.index_note import NamedDemand
from eddyline.spark.state.needs import Need
from eddyline.spark.state.state_file import StateFile

#: A number for each role of a query is needed where rows carry the queries that want them.
ROLES_MAX = 16


def part_number(query: int, role: int) -> int:
    """Return the number by which rows say that a query wants them in one of its roles.

    Negative, so that it cannot meet the number of a query over one stream.

    Examples
    --------
    >>> part_number(0, 0), part_number(2, 1)
    (-1, -34)

    """
    return -1 - (query * ROLES_MAX + role)


def owner(number: int) -> int:
    """Return the number of the query that a number stands for: itself, or one of its roles.

    Examples
    --------
    >>> owner(7), owner(part_number(7, 3))
    (7, 7)

    """
    return number if number >= 0 else (-1 - number) // ROLES_MAX


def late_number(stream: int) -> int:
    """Return the number under which late rows of a stream are stored, beside those of queries.

    Examples
    --------
    >>> late_number(0), late_number(3)
    (-1, -4)

    """
    return -1 - stream


@dataclass(frozen=True)
class StemLayout:
    """A SteM as tasks see it: the rows of one stream, dealt out to tasks by one of its keys.

    Parameters
    ----------
    name
        Identifies the SteM in files and from plan to plan.
    keys
        Names of the key columns.
    hashed
        For each key column, whether a hash crosses beside the value.
    occurrences
        How often the stream stands in one query at most.
    payload
        The columns that results are made of.
    stream, time
        Number of the stream, and its event-time column; None without one.
    compared
        Names of what comparisons across streams use.
    first_tasks
        The tasks that have the first copy of their rows; None if rows go to one task only.

    """

    name: str
    keys: tuple[str, ...]
    hashed: tuple[bool, ...]
    occurrences: int
    payload: pa.Schema
    stream: int
    time: str | None
    compared: tuple[str, ...] = ()
    first_tasks: frozenset[int] | None = None


@dataclass(frozen=True)
class JoinPart:
    """A role of a query: what a row with its number stands for.

    Parameters
    ----------
    slot, occurrence
        The bit in the lineage of rows.
    watermark_us
        Rows older than this are late for the query; None if it has windows of rows alone.
    stem
        Number of the SteM that serves it.

    """

    slot: int
    occurrence: int
    watermark_us: int | None
    stem: int


@dataclass(frozen=True)
class JoinPlan:
    """Everything that the tasks of a micro-batch need.

    Parameters
    ----------
    batch
        The micro-batch.
    tasks
        Number of tasks that rows are dealt out to.
    state, results
        Folders to write to.
    queries
        In the form in which the join plane knows them; their streams are positions in `stems`.
    slot_keys
        By slot, the number of a query and how often it was resumed.
    parts
        By part number.
    role_fields
        For each role, the name of the struct that holds its rows in results.
    stems
        All SteMs.
    files
        Containers of earlier micro-batches, by task.
    merges
        Names of the containers that each task should merge into one.
    needs
        For each SteM, what queries may still join of its stored rows.
    orders
        By role of new rows, as a name, the names of the probes in the order to begin with.
    bits
        For each SteM, the part numbers that bits of `PARTS` stand for; empty if it is a list.
        They are those of all roles of its stream.
    policy, seed
        Decides in which order rows ask SteMs, None for the default; for whatever it draws.
    counted
        By number of the stream, its rows in this micro-batch; empty if no query has a window of
        rows.
    demands
        By name of the SteM, the searches that were assessed so far.
    costs, tuning
        Unit costs of indexes, and how they are tuned; None for the default.

    """

    batch: int
    tasks: int
    state: pathlib.Path
    results: pathlib.Path
    queries: tuple[JoinQuery, ...]
    slot_keys: Mapping[int, tuple[int, int]]
    parts: Mapping[int, JoinPart]
    role_fields: Mapping[Role, str]
    stems: tuple[StemLayout, ...]
    files: Mapping[int, tuple[StateFile, ...]]
    merges: Mapping[int, tuple[str, ...]]
    needs: Mapping[int, tuple[Need, ...]]
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bits: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    policy: Policy | None = None
    seed: int | None = None
    counted: Mapping[int, CountedRows] = field(default_factory=dict)
    demands: Mapping[str, NamedDemand] = field(default_factory=dict)
    costs: UnitCosts = DEFAULT_COSTS
    tuning: TuningOptions | None = None

    def role_name(self, role: Role) -> str:
        """Return a name for a role that means the same in other plans."""
        name = self.stems[role.stream].name
        return f"{name} ({role.occurrence + 1})" if role.occurrence else name
