"""Runs the joins of a micro-batch: one exchange, one task for each core, one note from each."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eddyline.journal import Event
from eddyline.journal.events import (
    IndexAssessed,
    IndexRivalChosen,
    JoinDealt,
    JoinTaskSkewed,
    ProbeOrderChanged,
    event_from_dict,
)
from eddyline.ordering import Policy
from eddyline.report.run import IndexNumbers, JoinNumbers
from eddyline.spark.common.side_channel import unpack
from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.causes import worker_message
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.dealing import Dealing
from eddyline.spark.engine.exchange import Exchange, TaskFunction
from eddyline.spark.engine.join_planner import JoinPlanner
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.spark.engine.wanted_parts import WantedParts
from eddyline.spark.state.counted_rows import CountedRows
from eddyline.spark.state.index_note import IndexNote
from eddyline.spark.state.join_note import JoinNote
from eddyline.spark.state.join_plan import JoinPlan
from eddyline.spark.state.join_state import JoinState
from eddyline.spark.state.join_worker import join_task
from eddyline.spark.state.state_file import StateFile, StateFileError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: After so many micro-batches, containers are deleted that tasks wrote before they failed.
LEFTOVERS_EVERY = 16
#: A task is much larger than others if it has so many times the rows that it would have of all.
SKEW_MIN = 1.5
#: Watermark of a stream from which nothing was read yet.
_NEVER_US = -(2**62)


class JoinRunner:
    """Joins micro-batches.

    Parameters
    ----------
    streams
        The streams of the engine, in the order of their numbers.
    folder
        The folder of the engine.
    containers
        The join state as of the last finished micro-batch, oldest first, as in its records.
    tasks
        Number of tasks.
    note
        Writes a decision into the journal.
    policy, seed
        Decides in which order rows ask SteMs, None for the default; for whatever it draws.

    """

    def __init__(
        self,
        streams: Sequence[StreamInfo],
        folder: pathlib.Path,
        containers: Iterable[Mapping[str, Any]],
        tasks: int,
        note: Callable[[Event], None],
        policy: Policy | None = None,
        seed: int | None = None,
    ) -> None:
        self._streams = streams
        self._note = note
        self._planner = JoinPlanner(streams, folder, tasks, policy, seed)
        self._exchange: Exchange | None = None
        #: Queries whose dealing was reported.
        self._dealt: set[str] = set()
        #: Keys that were reported because most rows of a task have them.
        self._heavy: set[tuple[str, str]] = set()
        #: By state, the last assessment that was reported, and the rivals of its index that were.
        self._assessed: dict[str, IndexAssessed] = {}
        self._rivals: dict[str, set[tuple[str, str]]] = {}
        #: The join state as of the last finished micro-batch.
        self.state = JoinState(folder / "state")
        self.state.apply(map(StateFile.from_dict, containers), ())
        self.state.delete_unlisted()  # written by a micro-batch that was not finished
        self._batches = 0

    def keep(self, record: BatchRecord) -> None:
        """Take over what a finished micro-batch changed."""
        added = [StateFile.from_dict(plain) for plain in record.state_added]
        self.state.apply(added, record.state_removed)
        self._batches += 1
        if self._batches % LEFTOVERS_EVERY == 0:
            self.state.delete_unlisted()

    def run(
        self,
        matched: DataFrame,
        wanted: WantedParts,
        batch: int,
        queries: Mapping[CompiledQuery, int],
        newest_us: Mapping[str, int],
        counted: Mapping[int, CountedRows],
    ) -> tuple[JoinNote, list[str]]:
        """Join the matched rows of a micro-batch; return what was done, and expired containers.

        Parameters
        ----------
        matched, wanted
            Rows, and which roles of queries want them.
        batch
            The micro-batch.
        queries
            The queries that join streams, each with the number of times that it was resumed.
        newest_us
            Newest event time of each stream, by name, as of the last finished micro-batch.
        counted
            By number of the stream, its rows; empty if no query has a window of rows.

        """
        watermarks_us = {
            stream.name: newest_us.get(stream.name, _NEVER_US) - stream.delay_us
            for stream in self._streams
        }
        planned = self._planner.plan(batch, queries, watermarks_us, wanted, self.state, counted)
        if self._exchange is None or self._exchange.identity != planned.exchange.identity:
            self._exchange = planned.exchange
        self._report_dealings(planned.dealings)
        planned.plan.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            packed = self._exchange.run_tasks(matched, _task_function(planned.plan))
        except Exception as error:
            said = worker_message(error, StateFileError)
            if said is None:
                raise
            raise StateFileError(said) from error  # it names the file and the fix
        notes = (JoinNote.from_dict(plain) for plain in unpack(packed))
        note = JoinNote.merge(notes)
        self._learn(note)
        self._report_skew(note, planned.plan.tasks)
        return note, list(planned.expired)

    def numbers(self, note: JoinNote) -> JoinNumbers:
        """Return what the last finished micro-batch came to, for the report."""
        names = {stream.number: stream.name for stream in self._streams}
        return JoinNumbers(
            note.combinations,
            note.candidates,
            note.matches,
            note.busy_s,
            note.opening_s,
            note.originals,
            {names[number]: count for number, count in note.late.items()},
            sum(file.size for file in note.added),
            self.state.rows,
            self.state.bytes,
            len(self.state),
            note.rows / max(note.originals, 1),
            {name: _index_numbers(index) for name, index in note.indexes.items()},
            note.tuning_s,
        )

    def _report_dealings(self, dealings: Mapping[str, Dealing]) -> None:
        """Write into the journal, once for each query, how it is joined without a common key."""
        for name, dealing in dealings.items():
            if name not in self._dealt:
                self._dealt.add(name)
                self._note(JoinDealt(query=name, tasks=dealing.tasks, gain=dealing.gain))

    def _report_skew(self, note: JoinNote, tasks: int) -> None:
        """Write into the journal, once for each key, that a task has most of the rows."""
        for task, heavy in note.heavy.items():
            rows = note.task_rows[task]
            is_known = (heavy.stem, heavy.key) in self._heavy
            if tasks > 1 and not is_known and rows * tasks > SKEW_MIN * note.rows:
                self._heavy.add((heavy.stem, heavy.key))
                self._note(
                    JoinTaskSkewed(
                        stem=heavy.stem,
                        key=heavy.key,
                        key_rows=heavy.rows,
                        task_rows=rows,
                        rows=note.rows,
                    )
                )

    def _is_news(self, event: Event) -> bool:
        """Whether an event about indexes says more than the last one: each task decides itself."""
        if isinstance(event, IndexRivalChosen):
            known = self._rivals.setdefault(event.state, set())
            is_news = (event.pattern, event.rival) not in known
            known.add((event.pattern, event.rival))
            return is_news
        if isinstance(event, IndexAssessed):
            before = self._assessed.get(event.state)
            if before is not None and event.is_like(before):
                return False
            self._assessed[event.state] = event
        return True

    def _learn(self, note: JoinNote) -> None:
        """Keep what tasks learnt for the next micro-batch; write changes into the journal."""
        for name, index in note.indexes.items():
            if index.demand.frequencies:
                self._planner.demands[name] = index.demand
        for plain in note.events:
            event = event_from_dict(plain)
            if self._is_news(event):
                self._note(event)
        for role, order in note.orders.items():
            before = self._planner.orders.get(role)
            if before is not None and set(before) == set(order) and before != order:
                numbers = {"candidates": note.candidates, "matches": note.matches}
                self._note(
                    ProbeOrderChanged(role=role, before=before, after=order, details=numbers)
                )
            self._planner.orders[role] = order


def _index_numbers(note: IndexNote) -> IndexNumbers:
    searches: dict[str, dict[str, int]] = {}
    for (pattern, index), probes in note.searches.items():
        searches.setdefault(pattern, {})[index] = probes
    frequencies = {
        ", ".join(pattern): share for pattern, share in note.demand.frequencies.items() if pattern
    }
    configurations = dict(note.configurations)
    return IndexNumbers(searches, configurations, frequencies, note.bytes, note.rows, note.build_s)


def _task_function(plan: JoinPlan) -> TaskFunction:
    def eddyline_join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return join_task(plan, batches)

    return eddyline_join
