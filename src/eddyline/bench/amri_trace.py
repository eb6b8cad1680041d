"""The join of four streams, run once: which searches it makes, and how many results it has.

What a tuple searches for depends on its path, not on the index. So the searches are recorded once,
by exact searches, and every index is then asked how much work they are (`amri_work.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import Codes, IntArray
from eddyline.bench.amri_data import PHASE_ROWS, STREAMS, Path, Streams, column_for, others
from eddyline.index.index import Pattern
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.time_partitions import MakeIndex, TimePartitions

#: The paper's rows of a partition and of a window.
PARTITION_ROWS, WINDOW_ROWS = 2_500, 10_000
#: Share of the tuples that go along another path than the best one.
EXPLORED_SHARE = 0.02
#: Tuples from which the router finds the best path of data whose best path is not known.
SAMPLE_ROWS = 50


@dataclass(frozen=True)
class Arrival:
    """Rows of a stream that are stored in its state: from one position to another."""

    state: int
    begin: int
    end: int


@dataclass(frozen=True)
class Search:
    """Searches of a state by the same columns, which arrive together."""

    state: int
    pattern: Pattern
    codes: list[Codes]

    def __len__(self) -> int:
        return len(self.codes[0])


@dataclass(frozen=True)
class Step:
    """A batch of one stream: its arrival, the searches it makes, and the results it has."""

    arrival: Arrival
    searches: list[Search]
    results: int


@dataclass
class Trace:
    """All steps of a join.

    Parameters
    ----------
    streams
        The rows.
    steps
        In the order of arrival.
    chosen_requests, explored_requests
        Searches of tuples along the path that the router chose, and along other paths.

    """

    streams: Streams
    partition_rows: int = PARTITION_ROWS
    window_rows: int = WINDOW_ROWS
    steps: list[Step] = field(default_factory=list)
    chosen_requests: int = 0
    explored_requests: int = 0

    @property
    def results(self) -> int:
        """Number of results."""
        return sum(step.results for step in self.steps)

    @property
    def requests(self) -> int:
        """Number of searches."""
        return self.chosen_requests + self.explored_requests

    def frequencies(self, state: int) -> dict[Pattern, float]:
        """Return the share of each access pattern in the searches of a state."""
        counts: dict[Pattern, int] = {}
        for search in itertools.chain.from_iterable(step.searches for step in self.steps):
            if search.state == state:
                counts[search.pattern] = counts.get(search.pattern, 0) + len(search)
        total = sum(counts.values())
        return {pattern: count / total for pattern, count in counts.items()}

    def searches_per_row(self, state: int) -> float:
        """Return the searches that a stored row of a state meets until it expires."""
        searches = sum(len(s) for step in self.steps for s in step.searches if s.state == state)
        return searches / self.streams.rows * self.window_rows

    def new_states(self, make: MakeIndex = LazyHash) -> list[TimePartitions]:
        """Return empty states."""
        return [
            TimePartitions(STREAMS - 1, self.partition_rows, self.window_rows, make)
            for _ in range(STREAMS)
        ]

    def rows_of(self, arrival: Arrival) -> list[Codes]:
        """Return the codes of the rows that arrive."""
        return [column[arrival.begin : arrival.end] for column in self.streams.codes[arrival.state]]


#: Which rows of each stream a tuple consists of, an array for each stream it has.
Tuples = Mapping[int, IntArray]


@dataclass
class Joiner:
    """Runs the join, with any index.

    Parameters
    ----------
    trace
        Receives the searches.
    batch_rows
        Rows of a stream that arrive together; the streams take turns.
    make
        Makes the index of a partition.
    explored_share
        Share of the tuples that go along other paths.
    seed
        Of the choice of these tuples.

    """

    trace: Trace
    batch_rows: int = 250
    make: MakeIndex = LazyHash
    explored_share: float = EXPLORED_SHARE
    seed: int = 0
    phase_rows: int = PHASE_ROWS
    #: Receives the combinations of each batch: positions of rows, by stream.
    collect: Callable[[Tuples], None] | None = None

    def run(self) -> Iterator[Step]:
        """Yield the steps, each after it is done."""
        streams, rng = self.trace.streams, np.random.default_rng(self.seed)
        self._states = self.trace.new_states(self.make)
        for begin in range(0, streams.rows, self.batch_rows):
            for stream in range(STREAMS):
                arrival = Arrival(stream, begin, min(begin + self.batch_rows, streams.rows))
                self._states[stream].append(self.trace.rows_of(arrival))
                self._states[stream].purge()
                step = self._step(arrival, rng)
                self.trace.steps.append(step)
                yield step

    def _step(self, arrival: Arrival, rng: np.random.Generator) -> Step:
        stream, rows = arrival.state, np.arange(arrival.begin, arrival.end)
        best = self._best(arrival)
        every = list(itertools.permutations(others(stream)))
        is_explored = rng.random(len(rows)) < self.explored_share
        explored = rng.integers(1, len(every), len(rows)) + every.index(best)
        choice = np.where(is_explored, explored, every.index(best)) % len(every)
        searches: list[Search] = []
        results = 0
        for number, path in enumerate(every):
            own = rows[choice == number]
            if not len(own):
                continue
            found, made = self._along(path, {stream: own})
            searches += made
            results += len(found[stream])
            requests = sum(map(len, made))
            if path == best:
                self.trace.chosen_requests += requests
            else:
                self.trace.explored_requests += requests
            if self.collect is not None:
                self.collect(found)
        return Step(arrival, searches, results)

    def _best(self, arrival: Arrival) -> Path:
        """Return the generator's order, or the one with fewest requests for a sample."""
        paths = self.trace.streams.paths
        if paths is not None:
            return paths[arrival.state][arrival.begin // self.phase_rows]
        step = max(1, (arrival.end - arrival.begin) // SAMPLE_ROWS)
        sample = {arrival.state: np.arange(arrival.begin, arrival.end, step)}
        every = itertools.permutations(others(arrival.state))
        return min(every, key=lambda path: sum(map(len, self._along(path, sample)[1])))

    def _along(self, path: Path, tuples: Tuples) -> tuple[Tuples, list[Search]]:
        """Send tuples along a path; return the results and the searches."""
        searches = []
        for state in path:
            if not len(next(iter(tuples.values()))):
                break
            search = self._search_of(state, tuples)
            searches.append(search)
            probes, rows = self._found(search)
            tuples = {stream: own[probes] for stream, own in tuples.items()} | {state: rows}
        return tuples, searches

    def _search_of(self, state: int, tuples: Tuples) -> Search:
        by_column = {column_for(state, stream): stream for stream in tuples}
        pattern = tuple(sorted(by_column))
        codes = [
            self.trace.streams.codes[by_column[column]][column_for(by_column[column], state)][
                tuples[by_column[column]]
            ]
            for column in pattern
        ]
        return Search(state, pattern, codes)

    def _found(self, search: Search) -> tuple[IntArray, IntArray]:
        """Return the probes with matches, and the positions of the rows that match."""
        state = self._states[search.state]
        number = state.begin_search()
        parts = [
            (probes, rows + partition.number * state.partition_rows)
            for partition, probes, rows in state.search(number, search.pattern, search.codes)
        ]
        state.end_search(number)
        if not parts:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        probes, rows = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return probes, rows


def trace_of(
    streams: Streams,
    batch_rows: int = 250,
    explored_share: float = EXPLORED_SHARE,
    seed: int = 0,
    phase_rows: int = PHASE_ROWS,
) -> Trace:
    """Return the searches of a join."""
    trace = Trace(streams)
    joiner = Joiner(
        trace, batch_rows, explored_share=explored_share, seed=seed, phase_rows=phase_rows
    )
    for _ in joiner.run():
        pass
    return trace
