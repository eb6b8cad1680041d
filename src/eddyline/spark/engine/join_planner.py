"""From the join queries of one version of the catalogue to the plan of a micro-batch's joins.

Every role of a query gets a SteM: the rows of its stream, dealt out to tasks by one key. Queries
whose roles are dealt out by the same keys share their SteMs, whatever else they ask.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from eddyline.fabric.shared.slots import Slots
from eddyline.joins.arrivals import UNCOUNTED
from eddyline.joins.plan import TIME_COLUMN, Bound, JoinQuery, KeyRef, Role
from eddyline.ordering import Policy
from eddyline.spark.engine.compared_key import ComparedKey, is_event_time
from eddyline.spark.engine.compiled_join import CompiledJoin
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.dealing import Axes, Dealing, deal, first_tasks
from eddyline.spark.engine.exchange import Exchange, StemExchange
from eddyline.spark.engine.join_key import JoinKey
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.spark.engine.wanted_parts import WantedParts
from eddyline.spark.state.compaction import choose_merges
from eddyline.spark.state.counted_rows import CountedRows
from eddyline.spark.state.join_plan import JoinPart, JoinPlan, StemLayout, part_number
from eddyline.spark.state.join_state import JoinState
from eddyline.spark.state.needs import ALWAYS_US, Need

#: A SteM: number of the stream, and how its rows are dealt out to tasks.
StemKey = tuple[int, Axes]


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
        stems = _Stems(self._streams, tasks)
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


class _Stems:
    """Collects the SteMs that queries need, with their keys and columns."""

    def __init__(self, streams: Mapping[str, StreamInfo], tasks: int) -> None:
        self._streams = streams
        self._tasks = tasks
        #: By name, how rows of queries without a common key are dealt out to tasks.
        self.dealings: dict[str, Dealing] = {}
        self._keys: dict[StemKey, dict[JoinKey, int]] = {}
        self._compared: dict[StemKey, dict[ComparedKey, int]] = {}
        self._payload: dict[int, set[str]] = {}
        self._roles: dict[int, list[Role]] = {}
        self._numbers: dict[StemKey, int] = {}
        self._occurrences: dict[StemKey, int] = {}

    def add(self, compiled: CompiledQuery) -> None:
        """Take a query into account."""
        join = compiled.join
        assert join is not None
        dealing = deal(join, self._tasks)
        if join.common_key() is None:
            self.dealings[compiled.name] = dealing
        seen: dict[int, int] = {}
        roles = []
        for position, part in enumerate(join.parts):
            stream = self._streams[part.query.stream]
            stem = (stream.number, dealing.roles[position])
            number = self._numbers.setdefault(stem, len(self._numbers))
            # Counted over all SteMs of the stream, as results say where the rows of a role are.
            roles.append(Role(number, seen.get(stream.number, 0)))
            seen[stream.number] = seen.get(stream.number, 0) + 1
            occurrences = max(self._occurrences.get(stem, 0), seen[stream.number])
            self._occurrences[stem] = occurrences
            keys = self._keys.setdefault(stem, {})
            own = [axis.key for axis in stem[1] if axis.key is not None]
            own += [rk.key for equal in join.equalities for rk in equal if rk.role == position]
            for join_key in own:
                keys.setdefault(join_key, len(keys))
            compared = self._compared.setdefault(stem, {})
            for key in join.compared_keys(position):
                if not is_event_time(key, stream):
                    compared.setdefault(key, len(compared))
            self._payload.setdefault(stream.number, set()).update(part.query.columns)
        self._roles[compiled.number] = roles

    def roles(self, compiled: CompiledQuery) -> list[Role]:
        """Return the roles of a query in the order of FROM."""
        return self._roles[compiled.number]

    def exchanges(self) -> list[StemExchange]:
        """Return how rows travel to each SteM, in the order of their numbers."""
        by_number = {stream.number: stream for stream in self._streams.values()}
        return [
            StemExchange(
                number,
                by_number[stem[0]],
                tuple(self._keys[stem]),
                stem[1],
                self._columns(by_number[stem[0]]),
                tuple(self._compared[stem]),
            )
            for stem, number in self._numbers.items()
        ]

    def layout(self, exchange: StemExchange) -> StemLayout:
        """Return a SteM as tasks see it."""
        fields = [f for f in exchange.stream.schema if f.name in exchange.payload]
        stem = next(stem for stem, number in self._numbers.items() if number == exchange.number)
        return StemLayout(
            exchange.name,
            tuple(key.name for key in exchange.keys),
            tuple(key.is_hashed for key in exchange.keys),
            self._occurrences[stem],
            to_arrow_schema(StructType(fields), timezone="UTC"),
            exchange.stream.number,
            exchange.stream.time,
            tuple(key.name for key in exchange.compared),
            first_tasks(exchange.axes),
        )

    def _columns(self, stream: StreamInfo) -> tuple[str, ...]:
        wanted = self._payload[stream.number]
        return tuple(field.name for field in stream.schema if field.name in wanted)


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
