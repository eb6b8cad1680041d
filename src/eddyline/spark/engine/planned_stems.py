"""The SteMs of a micro-batch: which rows they hold, by which keys, and which queries share them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from eddyline.joins.plan import Role
from eddyline.spark.engine.compared_key import ComparedKey, is_event_time
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.dealing import Axes, Dealing, deal, first_tasks
from eddyline.spark.engine.exchange import StemExchange
from eddyline.spark.engine.join_key import JoinKey
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.spark.state.join_plan import StemLayout

#: A SteM: number of the stream, and how its rows are dealt out to tasks.
StemKey = tuple[int, Axes]


class PlannedStems:
    """Collects the SteMs that queries need, with their keys and columns.

    Parameters
    ----------
    streams
        By name.
    tasks
        Number of tasks that rows are dealt out to.

    """

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
