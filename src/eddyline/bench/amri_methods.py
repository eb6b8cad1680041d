"""The index methods that the AMRI benchmarks compare: bit-address indexes and hash indices."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

from eddyline.bench.amri_data import STREAMS
from eddyline.bench.amri_trace import Search, Trace
from eddyline.bench.amri_work import IndexMethod, Work
from eddyline.index.assessment import SRIA
from eddyline.index.bit_address import BitAddress
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.demand import Demand
from eddyline.index.index import Index, Pattern
from eddyline.index.partition import Partition
from eddyline.index.rivals import AdaptiveHash, HashIndices, most_frequent
from eddyline.index.schedules import Schedule
from eddyline.index.selection import configurations
from eddyline.index.time_partitions import TimePartition
from eddyline.index.tuner import Tuner
from eddyline.index.tuning_options import TuningOptions
from eddyline.journal.events import IndexAssessed


@dataclass(frozen=True)
class Training:
    """What a run on other rows of the same kind showed of each state.

    Parameters
    ----------
    demands
        Which searches it serves.
    columns
        The first partition of each state.

    """

    demands: list[Demand]
    columns: list[Columns]

    @classmethod
    def of(cls, trace: Trace) -> Training:
        """Return what a trace shows."""
        rows = trace.partition_rows
        return cls(
            [Demand(trace.frequencies(s), trace.searches_per_row(s)) for s in range(STREAMS)],
            [Columns([c[:rows] for c in codes], [None] * 3) for codes in trace.streams.codes],
        )

    def patterns(self, state: int, count: int) -> tuple[Pattern, ...]:
        """Return the most frequent access patterns of a state."""
        return most_frequent(self.demands[state].frequencies, count)


def state_name(state: int) -> str:
    """Return the name of a state in tuners and schedules."""
    return f"S{state + 1}"


class BitAddressMethod(IndexMethod):
    """Bit-address indexes, with a tuner or with the configurations of the training run.

    Parameters
    ----------
    training
        What to begin with.
    options
        Of the tuner, with the number of bits.
    is_tuned
        Whether configurations change.

    """

    def __init__(self, training: Training, options: TuningOptions, is_tuned: bool = True) -> None:
        super().__init__()
        self.is_tuned = is_tuned
        self.options = dataclasses.replace(options, only=BitAddress.name)
        self.tuner = Tuner(self.options)
        self._partitions: list[dict[int, Partition]] = [{} for _ in range(STREAMS)]
        for state, demand in enumerate(training.demands):
            self.tuner.begin_with(state_name(state), demand)
            self.tuner.configuration(state_name(state), training.columns[state])

    def stored(self, state: int, partition: TimePartition, new_rows: int) -> None:
        """Index new rows with the configuration of their partition."""
        earlier = self._partitions[state].get(partition.number)
        columns = Columns(partition.codes, [None] * 3)
        selected = self.tuner.configuration(state_name(state), columns)
        configuration = earlier.configuration if earlier else selected
        own = Partition(columns, configuration, only=BitAddress.name)
        self._partitions[state][partition.number] = own
        self.work += Work(hashes=new_rows * _indexed(configuration), made=new_rows)
        self.tuner.arrived(state_name(state), new_rows)

    def removed(self, state: int, partition: TimePartition) -> None:
        """Delete one entry for each row."""
        self.work.deleted += len(self._partitions[state].pop(partition.number))

    def index(self, state: int, partition: TimePartition) -> Index:
        """Return the bit-address index of a partition."""
        return self._partitions[state][partition.number].bit_address

    def requested(self, search: Search) -> None:
        """Tell the tuner, which may select a configuration at once."""
        if self.is_tuned:
            state, own = state_name(search.state), list(self._partitions[search.state].values())
            before = [partition.configuration for partition in own]
            self.tuner.record(state, search.pattern, len(search))
            self.tuner.prepare(state, search.pattern, len(search), own)
            self._count_moved(own, before)

    def tune(self) -> None:
        """Let the tuner select configurations, and count what that costs."""
        if not self.is_tuned:
            return
        partitions = {
            state_name(state): list(self._partitions[state].values()) for state in range(STREAMS)
        }
        every = [partition for own in partitions.values() for partition in own]
        before = [partition.configuration for partition in every]
        for event in self.tuner.tune(partitions):
            if isinstance(event, IndexAssessed):
                tried = configurations(3, self.options.bits or 1) * event.entries
                self.work += Work(assessed=event.requests, evaluated=tried)
        self._count_moved(every, before)

    def _count_moved(self, partitions: list[Partition], before: list[Configuration]) -> None:
        """Count the work of indexing again the partitions whose configuration has changed."""
        for partition, configuration in zip(partitions, before, strict=True):
            if partition.configuration != configuration:
                rows = len(partition)
                hashes = rows * (_indexed(configuration) + _indexed(partition.configuration))
                self.work += Work(hashes=hashes, made=rows, deleted=rows)


def _indexed(configuration: Configuration) -> int:
    """Return the number of columns with bits."""
    return sum(bits > 0 for bits in configuration.bits)


class HashMethod(IndexMethod):
    """Hash indices over the most frequent patterns; those of new partitions may change.

    Parameters
    ----------
    training
        What to begin with.
    count
        Hash indices of a partition.
    schedule
        Says when to select again; None for never.

    """

    def __init__(self, training: Training, count: int, schedule: Schedule | None = None) -> None:
        super().__init__()
        self._schedule = schedule
        self._policies = [AdaptiveHash(count) for _ in range(STREAMS)]
        self._counts = [SRIA() for _ in range(STREAMS)]
        for policy, demand in zip(self._policies, training.demands, strict=True):
            policy.patterns_for(demand.frequencies)
        #: Patterns of each partition, and its index once it was searched.
        self._patterns: list[dict[int, tuple[Pattern, ...]]] = [{} for _ in range(STREAMS)]

    def stored(self, state: int, partition: TimePartition, new_rows: int) -> None:
        """Make a key for each row and index."""
        selected = _filled(self._policies[state])
        patterns = self._patterns[state].setdefault(partition.number, selected)
        partition.index = None
        hashes = new_rows * sum(map(len, patterns))
        self.work += Work(hashes=hashes, made=new_rows * len(patterns))

    def removed(self, state: int, partition: TimePartition) -> None:
        """Delete the keys of all rows."""
        self.work.deleted += len(partition) * len(self._patterns[state].pop(partition.number))

    def index(self, state: int, partition: TimePartition) -> Index:
        """Return the hash indices of a partition."""
        if partition.index is None:
            columns = Columns(partition.codes, [None] * 3)
            partition.index = HashIndices(columns, self._patterns[state][partition.number])
        return partition.index

    def requested(self, search: Search) -> None:
        """Count the searches of states that are assessed."""
        if self._schedule is None:
            return
        state = state_name(search.state)
        if self._schedule.is_assessing(state):
            self._counts[search.state].add(search.pattern, len(search))
            self.work.assessed += len(search)
        self._schedule.record(state, len(search))

    def tune(self) -> None:
        """Select the patterns of the partitions to come."""
        due = [] if self._schedule is None else self._schedule.take_due()
        for state in range(STREAMS):
            if state_name(state) in due:
                self._policies[state].patterns_for(self._counts[state].frequencies())
                self._counts[state].reset()


def _filled(policy: AdaptiveHash) -> tuple[Pattern, ...]:
    """Return the selected patterns, and others if fewer than the policy's number were searched."""
    every = [p for size in (1, 2, 3) for p in itertools.combinations(range(3), size)]
    more = [pattern for pattern in every if pattern not in policy.patterns]
    return (*policy.patterns, *more)[: policy.count]
