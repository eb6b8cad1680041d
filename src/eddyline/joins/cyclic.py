"""Joins that are not trees: every tuple is extended where it has the fewest candidates.

A tuple binds the key columns of the roles that it has. Each role that is left would be probed with
all columns that are bound; the SteM with the fewest candidates proposes its rows, and the others
validate them, because they are later probed with the columns of those rows too. So a heavy key of
one stream does not multiply with a heavy key of another, which the fixed spanning tree of the paper
would allow (`eddyline bench joins` counts both).

Tuples are extended depth first and in slices, so memory is bounded by the number of roles and the
size of a slice, whatever the number of results.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 8.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import IntArray
from eddyline.joins.bounds import Column, admits, bounds_of, intervals
from eddyline.joins.combinations import Combinations, RowBlock, any_bit
from eddyline.joins.join_tree import largest_window
from eddyline.joins.keys import KeyColumn
from eddyline.joins.match_lists import deadline
from eddyline.joins.plan import JoinQuery, Role, Step
from eddyline.joins.stem import SteM
from eddyline.joins.tuples import Tuples
from eddyline.joins.windows import row_tables, window_tables, within_rows
from eddyline.operators.bitmaps import bitmap_of, overlap


@dataclass
class CyclicProbing:
    """Joins new rows of one role, for queries with the same roles and equalities.

    Parameters
    ----------
    root
        The role of the new rows.
    queries
        The queries; they differ in windows and in the rows that they want.
    words
        Number of words in bitmaps of queries.

    """

    root: Role
    queries: Sequence[JoinQuery]
    words: int
    _steps: dict[tuple[Role, ...], list[Step]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Prepare what does not depend on the rows."""
        self._mask = bitmap_of((query.slot for query in self.queries), self.words)
        self._roles = self.queries[0].roles
        self._windows_us = {role: largest_window(self.queries, role) for role in self._roles}
        self._tables = window_tables(self.queries, self._windows_us, self.words)
        self._row_tables = row_tables(self.queries, self.words)
        equalities = self.queries[0].equalities
        self._keys = {
            role: [ref for equal in equalities for ref in sorted(equal) if ref.role == role]
            for role in self._roles
        }

    def run(self, stems: Mapping[int, SteM], emit: Callable[[Combinations], None]) -> None:
        """Join the new rows."""
        stem = stems[self.root.stream]
        if stem.new is None:
            return
        lineage = stem.new.lineage[self.root.occurrence]
        rows = np.flatnonzero(overlap(lineage, self._mask))
        times = stem.new.times_us[rows]
        tuples = Tuples(
            {self.root: rows + stem.first_new_id},
            times,
            deadline(times, self._windows_us[self.root]),
            lineage[rows] & self._mask,
            {ref: stem.new.keys[ref.column].take(rows) for ref in self._keys[self.root]},
        )
        if len(tuples):
            self._extend(tuples, stems, emit)

    def _extend(
        self, tuples: Tuples, stems: Mapping[int, SteM], emit: Callable[[Combinations], None]
    ) -> None:
        """Fill a further role of every tuple: the one with the fewest candidates."""
        steps = self._steps_after(tuple(tuples.ids))
        if not steps:
            self._finish(tuples, stems, emit)
            return
        choices = np.zeros(len(tuples), dtype=np.int64)
        if len(steps) > 1:
            counts = [
                stems[step.role.stream].count(
                    step.pattern, _searched(step, tuples), step.role < self.root
                )
                for step in steps
            ]
            choices = np.argmin(counts, axis=0)
        for number, step in enumerate(steps):
            chosen = np.flatnonzero(choices == number)
            if len(chosen):
                own = tuples if len(chosen) == len(tuples) else tuples.take(chosen)
                self._probe(step, own, stems, emit)

    def _steps_after(self, bound: tuple[Role, ...]) -> list[Step]:
        """Return the probes that can follow: those with bound columns, if there are any."""
        if bound not in self._steps:
            query = self.queries[0]
            left = [role for role in self._roles if role not in bound]
            steps = [Step(role, query.bindings(role, bound)) for role in left]
            searched = [step for step in steps if intervals(query, step.role, dict.fromkeys(bound))]
            with_keys = [step for step in steps if step.bindings]
            self._steps[bound] = with_keys or searched[:1] or steps[:1]
        return self._steps[bound]

    def _probe(
        self,
        step: Step,
        tuples: Tuples,
        stems: Mapping[int, SteM],
        emit: Callable[[Combinations], None],
    ) -> None:
        stem = stems[step.role.stream]
        with_new = step.role < self.root
        if step.bindings:
            found = stem.probe(step.pattern, _searched(step, tuples), with_new)
        elif searched := intervals(self.queries[0], step.role, tuples.ids):
            values = _values(tuples, stems)
            limits = {own.column: own.limits(values, len(tuples)) for own in searched}
            found = stem.between(limits, with_new)
        else:
            found = stem.every_row(len(tuples), with_new)
        bounds = bounds_of(self.queries[:1], step.role, tuples.ids, self.words)
        for probes, ids in found:
            extended = self._joined(step.role, tuples, stem, probes, ids)
            for bound, _ in bounds:
                extended = extended.take(np.flatnonzero(admits(bound, _values(extended, stems))))
            if len(extended):
                self._extend(extended, stems, emit)

    def _joined(
        self, role: Role, tuples: Tuples, stem: SteM, probes: IntArray, ids: IntArray
    ) -> Tuples:
        """Return tuples with matching rows, without those that no query wants."""
        times = stem.times_us(ids)
        newest = np.maximum(tuples.newest_us[probes], times)
        ends = np.minimum(tuples.deadline_us[probes], deadline(times, self._windows_us[role]))
        interested = tuples.interested[probes]
        interested &= stem.lineage(ids, role.occurrence, self.words)
        kept = np.flatnonzero((newest < ends) & any_bit(interested))
        if len(kept) < len(ids):
            probes, ids, interested = probes[kept], ids[kept], interested[kept]
            newest, ends = newest[kept], ends[kept]
        keys = {ref: key.take(probes) for ref, key in tuples.keys.items()}
        keys |= {ref: stem.key(ids, ref.column) for ref in self._keys[role] if len(ids)}
        filled = {other: rows[probes] for other, rows in tuples.ids.items()}
        return Tuples(filled | {role: ids}, newest, ends, interested, keys)

    def _finish(
        self, tuples: Tuples, stems: Mapping[int, SteM], emit: Callable[[Combinations], None]
    ) -> None:
        """Hand on the tuples that are in the windows of a query of theirs."""
        interested = tuples.interested
        for role, table in self._tables.items():
            ages_us = tuples.newest_us - stems[role.stream].times_us(tuples.ids[role])
            interested = interested & table.within(ages_us)
        rows = {role: (stems[role.stream], ids) for role, ids in tuples.ids.items()}
        interested = within_rows(self._row_tables, rows, interested)
        kept = np.flatnonzero(any_bit(interested))
        if len(kept):
            every = np.arange(len(kept))
            blocks = {
                role: RowBlock(stems[role.stream], ids[kept]) for role, ids in tuples.ids.items()
            }
            positions = dict.fromkeys(blocks, every)
            emit(Combinations(blocks, positions, tuples.newest_us[kept], interested[kept]))


def same_shape(queries: Sequence[JoinQuery]) -> list[list[JoinQuery]]:
    """Return queries in groups with the same roles, equalities and comparisons."""
    groups: dict[object, list[JoinQuery]] = {}
    for query in queries:
        shape = (query.roles, frozenset(query.equalities), frozenset(query.bounds))
        groups.setdefault(shape, []).append(query)
    return list(groups.values())


def _values(tuples: Tuples, stems: Mapping[int, SteM]) -> Column:
    """Return what gives compared columns of tuples."""
    return lambda ref: stems[ref.role.stream].values(tuples.ids[ref.role], ref.column)


def _searched(step: Step, tuples: Tuples) -> list[KeyColumn]:
    sources = {binding.column: tuples.keys[binding.source] for binding in step.bindings}
    return [sources[column] for column in step.pattern]
