"""How much work an index has with the searches of a join: counted, and priced at unit costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass, field

from eddyline.bench.amri_data import STREAMS
from eddyline.bench.amri_trace import Arrival, Search, Trace
from eddyline.index.bit_address import BitAddress
from eddyline.index.cost import DEFAULT_COSTS, UnitCosts
from eddyline.index.index import Index, Pattern
from eddyline.index.rivals import HashIndices
from eddyline.index.time_partitions import TimePartition, TimePartitions

#: Memory of a row that waits for its searches.
QUEUED_BYTES = 64


@dataclass
class Work:
    """Counts of work.

    Parameters
    ----------
    hashes
        Column values hashed, of stored rows and of probes.
    made, deleted
        Index entries.
    visits
        Ranges of buckets looked up, one for each search of a hash index or a scan.
    compared
        Rows compared with a probe.
    assessed
        Searches that an assessment counted.
    evaluated
        Cost calculations of index selection: a configuration and a pattern each.

    """

    hashes: int = 0
    made: int = 0
    deleted: int = 0
    visits: int = 0
    compared: int = 0
    assessed: int = 0
    evaluated: int = 0

    def __iadd__(self, other: Work) -> Work:
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)
        return self

    def cost_ns(self, costs: UnitCosts = DEFAULT_COSTS) -> float:
        """Return the time that the work takes, at unit costs.

        An entry is deleted at the cost of making it, a counted search costs a hash, and a cost
        calculation a comparison.

        Examples
        --------
        >>> costs = UnitCosts(hash_ns=1, compare_ns=10, insert_ns=100, visit_ns=1000)
        >>> Work(hashes=2, made=1, deleted=1, visits=3, compared=4).cost_ns(costs)
        3242.0

        """
        prices = (
            costs.hash_ns,
            costs.insert_ns,
            costs.insert_ns,
            costs.visit_ns,
            costs.compare_ns,
            costs.hash_ns,
            costs.compare_ns,
        )
        return float(sum(n * price for n, price in zip(astuple(self), prices, strict=True)))


def search_work(index: Index, search: Search) -> Work:
    """Return the work of searches of one partition."""
    probes = len(search)
    compared = int(index.ranges(search.pattern, search.codes).counts.sum())
    if isinstance(index, BitAddress):
        walk = index.walk(search.pattern)
        return Work(probes * len(walk.used), 0, 0, probes * len(walk.wild), compared)
    hashed: Pattern = ()
    if isinstance(index, HashIndices):
        hashed = index.suitable(search.pattern) or ()
    return Work(hashes=probes * len(hashed), visits=probes, compared=compared)


class IndexMethod(ABC):
    """Keeps the indexes of four states, and counts its work."""

    def __init__(self) -> None:
        self.work = Work()

    @abstractmethod
    def stored(self, state: int, partition: TimePartition, new_rows: int) -> None:
        """Take note of new rows in a partition; count hashes and entries made."""

    @abstractmethod
    def removed(self, state: int, partition: TimePartition) -> None:
        """Forget a partition; count entries deleted."""

    @abstractmethod
    def index(self, state: int, partition: TimePartition) -> Index:
        """Return the index of a partition."""

    @abstractmethod
    def requested(self, search: Search) -> None:
        """Take note of searches that a state is about to serve."""

    @abstractmethod
    def tune(self) -> None:
        """Select again what to index by, if it is time."""


@dataclass(frozen=True)
class StepWork:
    """What a batch of one stream cost: rows, nanoseconds, results, and index bytes after it."""

    rows: int
    cost_ns: float
    results: int
    bytes: int


@dataclass
class Replay:
    """The work of a method with all searches of a join.

    Parameters
    ----------
    work
        In all.
    steps
        Of each batch.
    bytes_per_row
        Memory of the indexes beyond the rows, at the end.

    """

    work: Work
    steps: list[StepWork] = field(default_factory=list)
    bytes_per_row: float = 0.0

    @property
    def results(self) -> int:
        """Number of results."""
        return sum(step.results for step in self.steps)

    @property
    def cost_ns(self) -> float:
        """Time of the whole work, at unit costs."""
        return sum(step.cost_ns for step in self.steps)

    @property
    def per_result_ns(self) -> float:
        """Work per result, at unit costs."""
        return self.cost_ns / max(self.results, 1)

    def results_until_full(self, arrival_ns: float, memory_bytes: float) -> int:
        """Return the results until memory is full.

        A row arrives every so many nanoseconds, and waits in a queue, of `QUEUED_BYTES` a row,
        until the rows before it are served. The indexes take memory too.
        """
        clock_ns, served, results = 0.0, 0, 0
        for step in self.steps:
            clock_ns = max(clock_ns, served * arrival_ns) + step.cost_ns
            served += step.rows
            queued = max(clock_ns / arrival_ns - served, 0.0)
            if step.bytes + queued * QUEUED_BYTES > memory_bytes:
                break
            results += step.results
        return results


def replay(trace: Trace, method: IndexMethod, costs: UnitCosts = DEFAULT_COSTS) -> Replay:
    """Count the work of a method that serves all searches of a join."""
    states = trace.new_states()
    steps: list[StepWork] = []
    before_ns = 0.0
    for step in trace.steps:
        _arrive(trace, states[step.arrival.state], step.arrival, method)
        for search in step.searches:
            state = states[search.state]
            method.requested(search)
            for partition in state.concerned(state.number):
                method.work += search_work(method.index(search.state, partition), search)
        if step.arrival.state == STREAMS - 1:  # every stream had its turn
            method.tune()
        now_ns = method.work.cost_ns(costs)
        bytes_ = _bytes(states, method)
        rows = step.arrival.end - step.arrival.begin
        steps.append(StepWork(rows, now_ns - before_ns, step.results, bytes_))
        before_ns = now_ns
    stored = sum(len(partition) for state in states for partition in state.partitions)
    return Replay(method.work, steps, steps[-1].bytes / stored)


def _arrive(trace: Trace, state: TimePartitions, arrival: Arrival, method: IndexMethod) -> None:
    rows_before = {partition.number: len(partition) for partition in state.partitions}
    state.append(trace.rows_of(arrival))
    for partition in state.partitions:
        new_rows = len(partition) - rows_before.get(partition.number, 0)
        if new_rows:
            method.stored(arrival.state, partition, new_rows)
    partitions_before = list(state.partitions)
    state.purge()
    for partition in partitions_before:
        if all(partition is not kept for kept in state.partitions):
            method.removed(arrival.state, partition)


def _bytes(states: list[TimePartitions], method: IndexMethod) -> int:
    return sum(
        method.index(number, partition).bytes
        for number, state in enumerate(states)
        for partition in state.partitions
    )


def execute(trace: Trace, method: IndexMethod) -> int:
    """Let a method serve all searches of a join, candidates compared; return the matches."""
    states = trace.new_states()
    matches = 0
    for step in trace.steps:
        _arrive(trace, states[step.arrival.state], step.arrival, method)
        for search in step.searches:
            state = states[search.state]
            method.requested(search)
            for partition in state.concerned(state.number):
                index = method.index(search.state, partition)
                probes, positions = index.ranges(search.pattern, search.codes).expand()
                given = [column[probes] for column in search.codes]
                matches += int(index.confirm(search.pattern, positions, given)[1].sum())
        if step.arrival.state == STREAMS - 1:
            method.tune()
    return matches
