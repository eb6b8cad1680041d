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
from eddyline.joins.plan import JoinQuery, KeyRef, Role
from eddyline.ordering import Policy
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.exchange import Exchange, StemExchange
from eddyline.spark.engine.join_key import JoinKey
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.spark.engine.wanted_parts import WantedParts
from eddyline.spark.state.compaction import choose_merges
from eddyline.spark.state.join_plan import JoinPart, JoinPlan, StemLayout, part_number
from eddyline.spark.state.join_state import JoinState

#: A SteM: number of the stream, and the key by which its rows are dealt out; None for one task.
StemKey = tuple[int, JoinKey | None]


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

    """

    plan: JoinPlan
    exchange: Exchange
    expired: tuple[str, ...]


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

        """
        stems = _Stems(self._streams)
        for compiled in queries:
            stems.add(compiled)
        exchanges = stems.exchanges()
        slots = self._assign_slots(queries)
        parts: dict[int, JoinPart] = {}
        fields: dict[Role, str] = {}
        part_numbers: list[list[int]] = [[] for _ in exchanges]
        join_queries = []
        for compiled, resumed in queries.items():
            join = compiled.join
            assert join is not None
            slot = slots[compiled.number, resumed]
            roles = stems.roles(compiled)
            watermark_us = min(watermarks_us[part.query.stream] for part in join.parts)
            for position, role in enumerate(roles):
                number = part_number(compiled.number, position)
                parts[number] = JoinPart(slot, role.occurrence, watermark_us, role.stream)
                part_numbers[role.stream].append(number)
                fields[role] = join.fields[position].name
            join_queries.append(_to_join_query(compiled, slot, roles, exchanges))
        layouts = tuple(stems.layout(exchange) for exchange in exchanges)
        needed = {
            slots[compiled.number, resumed]: _needed_since_us(compiled, parts)
            for compiled, resumed in queries.items()
        }
        by_identity = {identity: needed[slot] for identity, slot in slots.items()}
        expired = state.expired(by_identity)
        files = state.by_task(without=expired)
        merges = {task: choose_merges(own) for task, own in files.items()}
        plan = JoinPlan(
            batch,
            state.tasks or self._tasks,  # stored rows stay where they are
            self._folder / "state",
            self._folder / "results" / f"batch={batch}",
            tuple(join_queries),
            {slot: identity for identity, slot in slots.items()},
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
        )
        numbers = tuple(map(tuple, part_numbers))
        exchange = Exchange(tuple(exchanges), wanted, numbers, plan.tasks)
        return PlannedJoins(plan, exchange, tuple(expired))

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

    def __init__(self, streams: Mapping[str, StreamInfo]) -> None:
        self._streams = streams
        self._keys: dict[StemKey, dict[JoinKey, int]] = {}
        self._payload: dict[int, set[str]] = {}
        self._roles: dict[int, list[Role]] = {}
        self._numbers: dict[StemKey, int] = {}
        self._occurrences: dict[StemKey, int] = {}

    def add(self, compiled: CompiledQuery) -> None:
        """Take a query into account."""
        join = compiled.join
        assert join is not None
        common = join.common_key()
        seen: dict[StemKey, int] = {}
        roles = []
        for position, part in enumerate(join.parts):
            stream = self._streams[part.query.stream]
            stem = (stream.number, None if common is None else common[position])
            number = self._numbers.setdefault(stem, len(self._numbers))
            roles.append(Role(number, seen.get(stem, 0)))
            seen[stem] = seen.get(stem, 0) + 1
            self._occurrences[stem] = max(self._occurrences.get(stem, 0), seen[stem])
            keys = self._keys.setdefault(stem, {})
            own = [] if stem[1] is None else [stem[1]]
            own += [rk.key for equal in join.equalities for rk in equal if rk.role == position]
            for key in own:
                keys.setdefault(key, len(keys))
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
                None if stem[1] is None else self._keys[stem][stem[1]],
                self._columns(by_number[stem[0]]),
            )
            for stem, number in self._numbers.items()
        ]

    def layout(self, exchange: StemExchange) -> StemLayout:
        """Return a SteM as tasks see it."""
        fields = [f for f in exchange.stream.schema if f.name in exchange.payload]
        stem = next(stem for stem, number in self._numbers.items() if number == exchange.number)
        assert exchange.stream.time is not None
        return StemLayout(
            exchange.name,
            tuple(key.name for key in exchange.keys),
            tuple(key.is_hashed for key in exchange.keys),
            self._occurrences[stem],
            to_arrow_schema(StructType(fields), timezone="UTC"),
            exchange.stream.number,
            exchange.stream.time,
        )

    def _columns(self, stream: StreamInfo) -> tuple[str, ...]:
        wanted = self._payload[stream.number]
        return tuple(field.name for field in stream.schema if field.name in wanted)


def _needed_since_us(compiled: CompiledQuery, parts: Mapping[int, JoinPart]) -> int:
    """Return the oldest event time that a query may still join."""
    join = compiled.join
    assert join is not None
    watermark_us = parts[part_number(compiled.number, 0)].watermark_us
    return watermark_us - max(join.windows_us) + 1


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
    return JoinQuery(slot, tuple(sorted(roles)), equalities, windows)
