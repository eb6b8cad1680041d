"""AMRI's tuning: assess the searches of a state, select a configuration, migrate partitions.

A tuner serves several states. It is told of every search and of every arrival; the schedule says
when to count which state's searches, the assessment counts them, selection finds the bits that
cost least for them, and the migration chooses the partitions that are indexed again. All other
partitions keep the configuration that they were written with.

References
----------
Works et al., Adaptive Multi-Route Index, 2013, sections 5 to 8.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eddyline.index.assessment import Assessment
from eddyline.index.bit_address import BITS_MAX, BitAddress
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.cost import DEFAULT_COSTS, UnitCosts
from eddyline.index.demand import Demand
from eddyline.index.index import Pattern
from eddyline.index.migration import PartitionUse
from eddyline.index.partition import Partition
from eddyline.index.selection import select
from eddyline.index.tuning_options import TuningOptions
from eddyline.index.words import bits_in_words, pattern_in_words
from eddyline.journal.events import Event, IndexAssessed, IndexReconfigured, IndexRivalChosen

#: Searches by a pattern are a surprise if they are so many times as frequent as was assessed.
SURPRISE = 2.0


@dataclass
class _State:
    """What a tuner knows of a state.

    Parameters
    ----------
    assessment
        Counts searches while the schedule asks for it.
    demand
        Found by the last assessment.
    arrivals, requests
        Rows and searches since the last assessment was complete.
    assessed
        Searches of the last assessment that was complete.
    configurations
        By number of bits, those that were selected for the demand.
    names
        Of the join columns; empty if they have none.

    """

    assessment: Assessment
    demand: Demand = field(default_factory=Demand)
    arrivals: int = 0
    requests: int = 0
    assessed: int = 0
    configurations: dict[int, Configuration] = field(default_factory=dict)
    names: Sequence[str] = ()

    def searches_per_row(self, stored: int) -> float:
        """Return the searches that a stored row meets until it expires, by those since."""
        return self.requests / max(self.arrivals, 1) * stored

    def recent_demand(self, stored: int) -> Demand:
        """Return the demand if the rest of the assessment is as the last one was."""
        known = max(self.assessed - self.requests, 0) / max(self.assessed, 1)
        searches = self.demand.searches or self.searches_per_row(stored)
        return self.demand.after(self.assessment.frequencies(), known, searches)

    def numbers(self) -> dict[str, Any]:
        """Return the numbers of the assessment, for events."""
        return {
            "requests": self.assessment.requests,
            "entries": self.assessment.entries,
            "frequencies": {
                pattern_in_words(pattern, self.names): share
                for pattern, share in self.assessment.frequencies().items()
            },
        }

    def adopt(self, demand: Demand) -> None:
        """Let configurations be selected for another demand from now on."""
        self.demand = demand
        self.configurations.clear()


class Tuner:
    """Tunes the configurations of states.

    Parameters
    ----------
    options
        Methods and their parameters.
    costs
        Measured unit costs.

    Examples
    --------
    >>> import numpy as np
    >>> from eddyline.index.columns import Columns
    >>> from eddyline.index.schedules import Continuous
    >>> tuner = Tuner(TuningOptions(schedule=lambda: Continuous(window_requests=100)))
    >>> codes = np.arange(1024, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    >>> columns = Columns([codes, codes], [None, None])
    >>> tuner.configuration("A", columns).bits
    (5, 5)
    >>> partition = Partition(columns, Configuration((5, 5)))
    >>> tuner.arrived("A", 1024)
    >>> tuner.record("A", (1,), 100)
    >>> for event in tuner.tune({"A": [partition]}):
    ...     print(event.kind)
    IndexAssessed
    IndexReconfigured
    >>> tuner.configuration("A", columns).bits
    (0, 10)

    """

    def __init__(
        self, options: TuningOptions | None = None, costs: UnitCosts = DEFAULT_COSTS
    ) -> None:
        self.options = options or TuningOptions()
        self.costs = costs
        self._schedule = self.options.schedule()
        self._states: dict[str, _State] = {}
        #: Rivals of the bit-address index that partitions have chosen, and the events about them.
        self._rivals: set[tuple[str, Pattern, str]] = set()
        self._choices: list[Event] = []
        #: Seconds that assessment, selection and migration took.
        self.busy_s = 0.0

    def _state(self, state: str) -> _State:
        if state not in self._states:
            self._states[state] = _State(self.options.assessment())
        return self._states[state]

    def arrived(self, state: str, rows: int) -> None:
        """Take note of rows that were added to a state."""
        self._state(state).arrivals += rows

    def record(self, state: str, pattern: Pattern, requests: int) -> None:
        """Take note of searches of a state by some columns."""
        began = time.perf_counter()
        own = self._state(state)
        own.requests += requests
        if self._schedule.is_assessing(state):
            own.assessment.add(pattern, requests)
        self._schedule.record(state, requests)
        self.busy_s += time.perf_counter() - began

    def configuration(self, state: str, columns: Columns) -> Configuration:
        """Return the configuration for new rows of a state.

        Parameters
        ----------
        state
            The state.
        columns
            The join columns of the rows.

        """
        own, bits = self._state(state), self._bits(len(columns))
        if bits not in own.configurations:
            own.configurations[bits] = self._select(own.demand, columns)
        return own.configurations[bits]

    def _select(self, demand: Demand, columns: Columns) -> Configuration:
        count, rows = len(columns.codes), len(columns)
        workload, cost = demand.on(rows), self.options.cost
        return select(count, self._bits(rows), workload, self.costs, columns.limits, cost)

    def begin_with(self, state: str, demand: Demand) -> None:
        """Begin with what was assessed before."""
        self._state(state).demand = demand

    def demand(self, state: str) -> Demand:
        """Return what the last assessment of a state found."""
        return self._state(state).demand

    def name_columns(self, state: str, names: Sequence[str]) -> None:
        """Give names to the join columns of a state, for events."""
        self._state(state).names = names

    def expected(self, state: str) -> Mapping[Pattern, float]:
        """Return how many searches by each pattern a stored row meets until it expires."""
        return self._state(state).demand.by_pattern

    def note_choice(self, state: str, pattern: Pattern, index: str, rows: int, probes: int) -> None:
        """Take note of the index that a partition has chosen for searches; rivals are events.

        Parameters
        ----------
        state, pattern
            The state, and the searched columns.
        index
            Name of the index.
        rows, probes
            Rows of the partition, and searches of the batch.

        """
        if index == BitAddress.name or (state, pattern, index) in self._rivals:
            return
        self._rivals.add((state, pattern, index))
        self._choices.append(
            IndexRivalChosen(
                state=state,
                pattern=pattern_in_words(pattern, self._state(state).names),
                rival=index,
                rows=rows,
                searches=max(self.expected(state).get(pattern, 0.0), probes),
            )
        )

    def _bits(self, rows: int) -> int:
        filled = max(rows, 2).bit_length() - 1
        return min(self.options.bits or filled, BITS_MAX)

    def tune(self, partitions: Mapping[str, Sequence[Partition]]) -> list[Event]:
        """Select configurations for the states whose assessment is complete, and migrate.

        Returns all decisions since the last call.

        Parameters
        ----------
        partitions
            All partitions of each state; a state without any is assessed again later.

        """
        began = time.perf_counter()
        events, self._choices = self._choices, []
        for state in self._schedule.take_due():
            if partitions.get(state) and self._state(state).assessment.requests:
                events += self._tune_state(state, partitions[state])
        self.busy_s += time.perf_counter() - began
        return events

    def prepare(
        self, state: str, pattern: Pattern, probes: int, partitions: Sequence[Partition]
    ) -> None:
        """Select a configuration at once if a recorded batch of searches would cost too much.

        That is so if indexing all rows again for it costs less, and searches by this pattern have
        become more than `SURPRISE` times as frequent since the present configuration was selected.
        The searches counted so far are taken with those assessed before; the assessment goes on.
        Where partitions may use rivals, nothing is done: they build a sorted hash for such a batch,
        which costs as much as indexing the rows again.

        Parameters
        ----------
        state, pattern, probes
            The state, the searched columns, and the number of searches.
        partitions
            Those that the searches concern.

        """
        if not self.options.at_once or self.options.only != BitAddress.name:
            return
        began = time.perf_counter()
        rows = sum(map(len, partitions))
        forecast_ns = sum(partition.walked_ns(pattern, probes) for partition in partitions)
        least_ns = len(partitions) * probes * self.costs.search_ns
        if forecast_ns > least_ns + rows * self.costs.insert_ns:
            own = self._state(state)
            recent = own.recent_demand(rows)
            share = own.demand.frequencies.get(pattern, 0.0)
            if recent.frequencies.get(pattern, 0.0) > SURPRISE * share:
                numbers = own.numbers()
                own.adopt(recent)
                self._choices += self._select_again(state, partitions, numbers)
        self.busy_s += time.perf_counter() - began

    def _tune_state(self, state: str, partitions: Sequence[Partition]) -> list[Event]:
        """Conclude an assessment, begin the next one, and select a configuration."""
        own, stored = self._state(state), sum(map(len, partitions))
        numbers, frequencies = own.numbers(), own.assessment.frequencies()
        own.assessed = own.requests
        own.adopt(Demand(frequencies, own.searches_per_row(stored)))
        own.assessment.reset()
        own.arrivals = own.requests = 0
        return self._select_again(state, partitions, numbers)

    def _select_again(
        self, state: str, partitions: Sequence[Partition], assessed: Mapping[str, Any]
    ) -> list[Event]:
        """Select the configuration for the demand of a state, and migrate; return the events."""
        # The newest partition of those with most bits: the newest of all may have a few rows.
        large = max(reversed(partitions), key=lambda partition: len(partition).bit_length())
        own = self._state(state)
        before, rows = large.configuration, len(large)
        best = self.configuration(state, large.columns)
        workload = own.demand.on(rows)
        cost_ms = {
            # Bits that the values of a column do not fill save nothing.
            each: self.options.cost(each.within(large.columns.limits), workload, self.costs) / 1e6
            for each in (before, best)
        }
        if cost_ms[best] >= cost_ms[before]:
            best = own.configurations[self._bits(rows)] = before
        numbers: dict[str, Any] = {
            "state": state,
            "before": bits_in_words(before, own.names),
            "after": bits_in_words(best, own.names),
            "cost_before": cost_ms[before],
            "cost_after": cost_ms[best],
        }
        if len(before.bits) == 1:
            return []  # one column has all bits
        events: list[Event] = [IndexAssessed(**assessed, **numbers)]
        if best != before:
            migrated = self._migrate(state, partitions)
            counts = {"partitions": len(partitions), "migrated": len(migrated)}
            events.append(IndexReconfigured(**(numbers | counts)))
        return events

    def _migrate(self, state: str, partitions: Sequence[Partition]) -> list[int]:
        """Index partitions again that will be searched often enough; return their positions.

        Partitions with different numbers of rows have different numbers of bits.
        """
        demand = self._state(state).demand
        move_ns = self.costs.insert_ns

        def search_ns(configuration: Configuration, rows: int) -> float:
            return self.options.cost(configuration, demand.one_search(rows), self.costs)

        migrated = []
        for position, partition in enumerate(partitions):
            best = self.configuration(state, partition.columns)
            # The oldest partition expires next, the newest one after all others.
            probes_expected = demand.searches * (position + 0.5) / len(partitions)
            use = PartitionUse(len(partition), partition.configuration, probes_expected)
            if self.options.migration.choose([use], best, search_ns, move_ns):
                partition.reconfigure(best)
                migrated.append(position)
        return migrated
