"""From the join queries of one version of the catalogue to the plan of a micro-batch's joins.

Every role of a query gets a SteM: the rows of its stream, dealt out to tasks by one key. Queries
whose roles are dealt out by the same keys share their SteMs, whatever else they ask.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from eddyline.fabric.shared.slots import Slots
from eddyline.index.calibration import calibrate
from eddyline.index.cost import UnitCosts
from eddyline.index.tuning_options import TuningOptions
from eddyline.joins.arrivals import UNCOUNTED
from eddyline.joins.plan import TIME_COLUMN, Bound, JoinQuery, KeyRef, Role
from eddyline.ordering import Policy
from eddyline.spark.engine.compared_key import ComparedKey, is_event_time
from eddyline.spark.engine.compiled_join import CompiledJoin
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.dealing import Dealing
from eddyline.spark.engine.exchange import Exchange, StemExchange
from eddyline.spark.engine.planned_stems import PlannedStems
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.spark.engine.wanted_parts import WantedParts
from eddyline.spark.state.compaction import choose_merges
from eddyline.spark.state.counted_rows import CountedRows
from eddyline.spark.state.index_note import NamedDemand
from eddyline.spark.state.join_plan import JoinPart, JoinPlan, part_number
from eddyline.spark.state.join_state import JoinState
from eddyline.spark.state.needs import ALWAYS_US, Need


@dataclass(frozen=True)
class PlannedJoins:
    """How the joins of a micro-batch run.

    Parameters
    ----------
    plan
        For the tasks.
    exchange
        How rows travel to tasks.
    expired
        Names of containers that no later result can need.
    dealings
        By name, how rows of queries without a common key are dealt out to tasks.

    """

    plan: JoinPlan
    exchange: Exchange
    expired: tuple[str, ...]
    dealings: Mapping[str, Dealing]


class JoinPlanner:
    """Plans joins; keeps the bits of queries from micro-batch to micro-batch.

    Parameters
    ----------
    streams
        The streams of the engine, in the order of their numbers.
    folder
        The folder of the engine.
    tasks
        Number of tasks, unless rows are stored that were dealt out to another number.
    policy, seed
        Decides in which order rows ask SteMs, None for the default; for whatever it draws.

    """

    #: How indexes are tuned; benchmarks set it to compare.
    tuning: ClassVar[TuningOptions | None] = None

    def __init__(
        self,
        streams: Sequence[StreamInfo],
        folder: pathlib.Path,
        tasks: int,
        policy: Policy | None = None,
        seed: int | None = None,
    ) -> None:
        self._tasks = tasks
        self._policy = policy
        self._seed = seed
        self._streams = {stream.name: stream for stream in streams}
        self._folder = folder
        self._slots = Slots()
        self._slot_of: dict[tuple[int, int], int] = {}
        #: By role of new rows, the order of probes that the last micro-batch ended with.
        self.orders: dict[str, tuple[str, ...]] = {}
        #: By SteM, the searches that workers have assessed.
        self.demands: dict[str, NamedDemand] = {}

    @functools.cached_property
    def _costs(self) -> UnitCosts:
        """Unit costs of indexes, measured once: the same for all tasks and micro-batches."""
        return calibrate()

    def plan(
        self,
        batch: int,
        queries: Mapping[CompiledQuery, int],
        watermarks_us: Mapping[str, int],
        wanted: WantedParts,
        state: JoinState,
        counted: Mapping[int, CountedRows],
    ) -> PlannedJoins:
        """Return how to join a micro-batch.

        Parameters
        ----------
        batch
            The micro-batch.
        queries
            The queries that join streams, each with the number of times that it was resumed.
        watermarks_us
            By stream name, the time before which no row is expected any more.
        wanted
            Says which roles want a row.
        state
            Containers of earlier micro-batches.
        counted
            By number of the stream, its rows; empty if no query has a window of rows.

        """
        tasks = state.tasks or self._tasks  # stored rows stay where they are
        stems = PlannedStems(self._streams, tasks)
        for compiled in queries:
            stems.add(compiled)
        exchanges = stems.exchanges()
        slots = self._assign_slots(queries)
        parts: dict[int, JoinPart] = {}
        fields: dict[Role, str] = {}
        part_numbers: list[list[int]] = [[] for _ in exchanges]
        needs: list[list[Need]] = [[] for _ in exchanges]
        join_queries = []
        for compiled, resumed in queries.items():
            join = compiled.join
            assert join is not None
            slot = slots[compiled.number, resumed]
            roles = stems.roles(compiled)
            watermark_us = None
            if join.is_timed:
                watermark_us = min(watermarks_us[part.query.stream] for part in join.parts)
            for position, role in enumerate(roles):
                number = part_number(compiled.number, position)
                parts[number] = JoinPart(slot, role.occurrence, watermark_us, role.stream)
                part_numbers[role.stream].append(number)
                before = (
                    counted[exchanges[role.stream].stream.number].clock.before if counted else 0
                )
                needs[role.stream].append(_need(join, position, role, slot, watermark_us, before))
                fields[role] = join.fields[position].name
            join_queries.append(_to_join_query(compiled, slot, roles, exchanges))
        layouts = tuple(stems.layout(exchange) for exchange in exchanges)
        slot_keys = {slot: identity for identity, slot in slots.items()}
        needed = {number: tuple(own) for number, own in enumerate(needs)}
        expired = state.expired({layouts[n].name: own for n, own in needed.items()}, slot_keys)
        files = state.by_task(without=expired)
        merges = {task: choose_merges(own) for task, own in files.items()}
        plan = JoinPlan(
            batch,
            tasks,
            self._folder / "state",
            self._folder / "results" / f"batch={batch}",
            tuple(join_queries),
            slot_keys,
            parts,
            fields,
            layouts,
            files,
            {task: names for task, names in merges.items() if names},
            needed,
            dict(self.orders),
            {own.number: wanted.bits(own.stream.number) for own in exchanges},
            self._policy,
            self._seed,
            counted,
            dict(self.demands),
            self._costs,
            self.tuning,
        )
        numbers = tuple(map(tuple, part_numbers))
        exchange = Exchange(tuple(exchanges), wanted, numbers, plan.tasks, bool(counted))
        return PlannedJoins(plan, exchange, tuple(expired), stems.dealings)

    def _assign_slots(self, queries: Mapping[CompiledQuery, int]) -> dict[tuple[int, int], int]:
        """Give every query a bit; those that ended give theirs back."""
        current = [(compiled.number, resumed) for compiled, resumed in queries.items()]
        for identity in self._slot_of.keys() - set(current):
            self._slots.give_back(self._slot_of.pop(identity))
        for identity in current:
            if identity not in self._slot_of:
                self._slot_of[identity] = self._slots.take()
        return dict(self._slot_of)


def _need(
    join: CompiledJoin, position: int, role: Role, slot: int, watermark_us: int | None, counted: int
) -> Need:
    """Return what a role may still join, given the rows of its stream that were counted."""
    window_us, size = join.windows_us[position], join.windows_rows[position]
    since_us = ALWAYS_US
    if window_us is not None and watermark_us is not None:
        since_us = watermark_us - window_us + 1
    return Need(slot, role.occurrence, since_us, UNCOUNTED if size is None else counted - size)


def _to_join_query(
    compiled: CompiledQuery, slot: int, roles: Sequence[Role], stems: Sequence[StemExchange]
) -> JoinQuery:
    join = compiled.join
    assert join is not None
    positions = [{key: n for n, key in enumerate(stem.keys)} for stem in stems]
    equalities = tuple(
        frozenset(KeyRef(roles[rk.role], positions[roles[rk.role].stream][rk.key]) for rk in equal)
        for equal in join.equalities
    )
    windows = dict(zip(roles, join.windows_us, strict=True))
    in_rows = zip(roles, join.windows_rows, strict=True)
    windows_rows = {role: size for role, size in in_rows if size is not None}

    def compared(role: Role, key: ComparedKey) -> KeyRef:
        stem = stems[role.stream]
        is_time = is_event_time(key, stem.stream)
        return KeyRef(role, TIME_COLUMN if is_time else stem.compared.index(key))

    bounds = tuple(
        Bound(compared(roles[b.low_role], b.low), compared(roles[b.high_role], b.high), b.offset)
        for b in join.bounds
    )
    return JoinQuery(slot, tuple(sorted(roles)), equalities, windows, windows_rows, bounds)
