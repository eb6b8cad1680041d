"""An engine that joins three streams without Spark: everything else of a micro-batch is real."""

from __future__ import annotations

import pathlib
import random
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from eddyline.joins.plan import JoinQuery, KeyRef, Role
from eddyline.spark.engine import housekeeping, result_merger
from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.batch_runner import BatchRunner
from eddyline.spark.engine.compiled_join import CompiledJoin, RoleField, RoleKey
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.exchange import Exchange, TaskFunction
from eddyline.spark.engine.folder import EngineFolder
from eddyline.spark.engine.join_key import JoinKey
from eddyline.spark.engine.matching import MatchOutcome
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.spark.engine.wanted_parts import ListedParts
from eddyline.spark.state import compaction, stored_runs
from eddyline.spark.state.join_plan import part_number
from tests.unit.joins import oracle
from tests.unit.joins.oracle import Row

DELAY_US = 6
NUMBER = StructType([StructField("number", LongType())])
STREAMS = [
    StreamInfo(number, name, NUMBER, "UTC", time="ts", delay_us=DELAY_US)
    for number, name in enumerate("abc")
]
#: By number of a query, the window of each stream that it joins.
QUERIES = {5: {"a": 7, "b": 7}, 6: {"a": 18, "b": 9, "c": 12}}
Rows = dict[int, list[Row]]


def compiled(number: int, windows_us: Mapping[str, int]) -> CompiledQuery:
    """Return a join of streams by one key."""
    parts = tuple(
        CompiledQuery(0, "", SimpleNamespace(stream=name, columns=("number",)), "part")  # type: ignore[arg-type]
        for name in windows_us
    )
    keys = frozenset(RoleKey(role, JoinKey("k", LongType())) for role in range(len(parts)))
    fields = tuple(RoleField(name, f"{name}_0", NUMBER) for name in windows_us)
    join = CompiledJoin(
        parts, (keys,), tuple(windows_us.values()), (None,) * len(parts), (), fields
    )
    query: Any = SimpleNamespace(is_row_for_row=True, streams=tuple(windows_us))
    return CompiledQuery(number, f"q{number}", query, "parquet", join=join)


class Sent:
    """Rows on their way to tasks, in place of a DataFrame."""

    def __init__(self, exchange: Exchange, rows: Rows) -> None:
        self.exchange, self.rows = exchange, rows

    def run_tasks(self, function: TaskFunction) -> list[bytes]:
        """Run one task after the other."""
        return [
            note
            for task in range(self.exchange.tasks)
            for made in function(self._batches(task))
            for note in made["note"].to_pylist()
        ]

    def _batches(self, task: int) -> Iterator[pa.RecordBatch]:
        stems = self.exchange.stems
        kind = pa.struct([("k0", pa.int64()), ("row", pa.struct([("number", pa.int64())]))])
        for own in stems:
            rows = [
                row
                for row in self.rows.get(own.stream.number, [])
                if (row.keys[0] or 0) % self.exchange.tasks == task
                and self._wanted(own.stream.name, row)
            ]
            if rows:
                structs = [{"k0": row.keys[0], "row": {"number": row.number}} for row in rows]
                columns: dict[str, Any] = {
                    "task": pa.array([task] * len(rows), pa.int32()),
                    "stem": pa.array([own.number] * len(rows), pa.int32()),
                    "time_us": pa.array([row.time_us for row in rows], pa.int64()),
                    "parts": pa.array(
                        [self._wanted(own.stream.name, row) for row in rows], pa.list_(pa.int32())
                    ),
                }
                for other in stems:
                    values = structs if other is own else [None] * len(rows)
                    columns[f"m{other.number}"] = pa.array(values, kind)
                yield pa.record_batch(columns)

    def _wanted(self, stream: str, row: Row) -> list[int]:
        return [
            part_number(number, list(windows).index(stream))
            for number, windows in QUERIES.items()
            if number in row.wanted[0] and stream in windows
        ]


class JoinSite:
    """Runs micro-batches in a folder, which can be opened again and again.

    Parameters
    ----------
    folder
        The folder of the engine.
    tasks
        Number of tasks that join.

    """

    def __init__(self, folder: pathlib.Path, tasks: int = 2) -> None:
        self.path, self._tasks = folder, tasks
        self.queries = {n: compiled(n, windows) for n, windows in QUERIES.items()}
        self.open()

    def open(self, repair: bool = False) -> None:
        """Open the folder as a new process would."""
        stored_runs.forget_all()
        self.folder = EngineFolder(None, self.path)  # type: ignore[arg-type]
        self.folder.handle_damage(repair)
        self.start()

    def start(self) -> None:
        """Start, with the folder as this process knows it."""
        registry: Any = SimpleNamespace(
            streams=lambda: STREAMS,
            settings=SimpleNamespace(check=lambda session: None),
            table_versions=dict,
            stream_named=None,
            functions={},
        )
        queries: Any = SimpleNamespace(
            display_text=str, name_for_spark=str, sink_of=lambda compiled: None
        )
        planner: Any = SimpleNamespace(
            policy=None,
            seed=1,
            learn=lambda *_: None,
            routes=SimpleNamespace(learn=lambda *_: None),
        )
        self.runner = BatchRunner(
            self.folder, registry, queries, planner, lambda: False, self._tasks
        )
        self.runner._matcher = SimpleNamespace(match=self._match)  # type: ignore[assignment]

    def end(self) -> None:
        """Let the folder go, as the end of a process does."""
        self.folder.close()

    def run(self, batch: int, rows: Rows) -> None:
        """Run a micro-batch, as Spark does: also one that was run before."""
        df: Any = SimpleNamespace(sparkSession=None, rows=rows)
        self.runner.run(df, batch)

    def _match(self, df: Any, batch: int, record: BatchRecord) -> MatchOutcome:
        times = self.runner._event_times
        joining = dict.fromkeys(self.queries.values(), 0)
        note, expired = self.runner._joins.run(
            df.rows, ListedParts("queries"), batch, joining, times.newest_us, {}
        )
        times.advance(
            {
                name: value
                for stream, rows in df.rows.items()
                for name, value in (
                    (f"newest_{stream}", max((row.time_us for row in rows), default=None)),
                    (f"late_{stream}", 0),
                )
            }
        )
        return MatchOutcome(queries=self.queries, joins=note, expired=tuple(expired))

    def found(self, number: int) -> list[tuple[int, ...]]:
        """Return the stored results of a query, role by role."""
        found = []
        for part in self.folder.log.parts():
            for name, size in part.join_files.items() if number in part.numbers else ():
                path = self.path / "results" / part.folder / name
                assert path.stat().st_size == size
                found += [
                    tuple(row[f"{stream}_0"]["number"] for stream in QUERIES[number])
                    for row in pq.ParquetFile(path).read().to_pylist()
                    if number in row["queries"]
                ]
        return sorted(found)

    def check(self, workload: Workload, batches: int) -> None:
        """Compare results with a nested loop, and what lies in the folder with the log."""
        self.check_results(workload, batches)
        stored = {path.name for path in (self.path / "state").glob("*")}
        assert stored == set(self.folder.log.state.containers)
        folders = {path.name for path in (self.path / "results").glob("*")}
        assert folders == {part.folder for part in self.folder.log.parts()}

    def check_results(self, workload: Workload, batches: int) -> None:
        """Compare results with a nested loop."""
        for number in QUERIES:
            expected = workload.answer(number, batches)
            assert self.found(number) == expected
            assert self.folder.log.state.matched.get(number, 0) == len(expected)


class Workload:
    """Rows of some micro-batches; none is late, and some are almost.

    Parameters
    ----------
    batches
        Number of micro-batches.
    seed
        For the rows.

    """

    def __init__(self, batches: int, seed: int) -> None:
        self._rng = random.Random(seed)
        self.rows: list[Rows] = []
        self._answers: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        newest_us = dict.fromkeys(range(len(STREAMS)), DELAY_US)
        for _ in range(batches):
            watermark_us = min(newest_us[0], newest_us[1]) - DELAY_US  # that of the first query
            made = {n: [self._row(n, place, watermark_us) for place in range(4)] for n in newest_us}
            for stream, rows in made.items():
                newest_us[stream] = max(newest_us[stream], *[row.time_us for row in rows])
            self.rows.append(made)

    def _row(self, stream: int, place: int, watermark_us: int) -> Row:
        batch, rng = len(self.rows), self._rng
        wanted = frozenset(number for number in QUERIES if rng.random() < 0.8)
        key, time_us = rng.choice([0, 1, 2, 3, None]), watermark_us + rng.randrange(DELAY_US + 8)
        return Row(100 * batch + 10 * stream + place, batch, (key,), time_us, {0: wanted})

    def answer(self, number: int, batches: int) -> list[tuple[int, ...]]:
        """Return what a nested loop over the rows of the first micro-batches gives for a query."""
        if (number, batches) not in self._answers:
            numbers = {stream.name: stream.number for stream in STREAMS}
            windows = {Role(numbers[name]): window for name, window in QUERIES[number].items()}
            equal = frozenset(KeyRef(role, 0) for role in windows)
            query = JoinQuery(number, tuple(windows), (equal,), windows)
            found: list[tuple[int, ...]] = []
            for key in range(4):  # rows of other keys are no partners
                merged = {
                    n: [r for own in self.rows[:batches] for r in own[n] if r.keys == (key,)]
                    for n in range(len(STREAMS))
                }
                found += oracle.results(query, merged)
            self._answers[number, batches] = sorted(found)
        return self._answers[number, batches]


def tidy_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compact, merge and write snapshots often; rows travel without Spark."""
    monkeypatch.setattr(
        Exchange, "run_tasks", lambda own, rows, task: Sent(own, rows).run_tasks(task)
    )
    monkeypatch.setattr(compaction, "FAN_IN", 2)
    monkeypatch.setattr(housekeeping, "SNAPSHOT_EVERY", 2)
    monkeypatch.setattr(result_merger, "FAN_IN_NEW", 2)
    monkeypatch.setattr(result_merger, "FAN_IN", 2)
