"""Drop-probing: new rows ask every SteM whether they have a partner, before anything is combined.

A row that has no partner in some SteM is of no use to the queries that need one; when no query is
left, the row is dropped and no further SteM is asked. That makes the probes pipelined filters, so
their order is decided by the policies that order filters. A role further down the tree is asked for
the rows of its parent: if none of them has a partner, the path to it has dropped the row.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, sections 8.1 and 8.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eddyline.arrays import Bitmap, BoolArray, IntArray
from eddyline.joins.class_orders import ProbeGroup
from eddyline.joins.combinations import Combinations, any_bit
from eddyline.joins.expansion import Expansion, ExpansionNode, plan_expansion
from eddyline.joins.join_tree import Node, largest_window
from eddyline.joins.match_lists import (
    MatchLists,
    Probe,
    RowSet,
    deadline,
    find_matches,
    has_partner,
    or_by_group,
)
from eddyline.joins.plan import Role
from eddyline.joins.probe_order import with_parents_first
from eddyline.joins.probe_routes import ProbeRoutes, SliceCounts
from eddyline.joins.stem import SteM
from eddyline.operators.bitmaps import bitmap_of, overlap

# Rows that take the same order: few while the rows change, many while they are steady.
SLICE_ROWS_MIN = 1 << 9
SLICE_ROWS_MAX = 1 << 13
STEADY_SLICES = 8
# Matches of a slice are in memory at once: rows that have many partners come in small slices.
MATCHES_MAX = 1 << 16
SLICE_ROWS_LEAST = 1 << 5


@dataclass
class DropProbing:
    """Joins new rows of one role, for all acyclic queries.

    Parameters
    ----------
    root
        The role.
    nodes
        The join tree, parents first.
    words
        Number of words in bitmaps of queries.
    routes
        In which orders SteMs are asked.

    """

    root: Role
    nodes: Sequence[Node]
    words: int
    routes: ProbeRoutes
    _slice_rows: int = SLICE_ROWS_MIN
    _rows_max: int = SLICE_ROWS_LEAST
    _steady_slices: int = 0
    _expansions: dict[tuple[int, ...], ExpansionNode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Prepare what does not depend on the rows."""
        queries = {query.slot: query for node in self.nodes for query in node.queries}
        self._mask = bitmap_of(queries, self.words)
        self._masks = [bitmap_of((q.slot for q in n.queries), self.words) for n in self.nodes]
        self._window_us = largest_window(list(queries.values()), self.root)
        self._needed = {
            number: tuple(
                dict.fromkeys(
                    binding.source
                    for node in self.nodes
                    if node.parent == number
                    for binding in node.step.bindings
                )
            )
            for number in range(-1, len(self.nodes))
        }

    def run(self, stems: Mapping[int, SteM], emit: Callable[[Combinations], None]) -> None:
        """Join the new rows.

        Parameters
        ----------
        stems
            By stream number.
        emit
            Called with results.

        """
        stem = stems[self.root.stream]
        if stem.new is None:
            return
        wanted = np.flatnonzero(overlap(stem.new.lineage[self.root.occurrence], self._mask))
        self.routes.begin(stem.new)
        begin = 0
        while begin < len(wanted):
            # Every class has as many rows of a slice as there would be without classes.
            slice_rows = min(self._slice_rows * self.routes.classes, self._rows_max)
            rows = wanted[begin : begin + slice_rows]
            begin += len(rows)
            has_drifted = False
            candidates = 0
            for group in self.routes.deal(rows):
                counts = self._run_slice(stems, group, emit)
                candidates += int(counts.candidates.sum())
                sample = group.rows[group.order.sample(len(group.rows))]
                drops = self._profile(stems, sample) if len(sample) else None
                has_drifted |= self.routes.learn(group, counts, drops)
            profiled = self.routes.profiled(rows)
            if len(profiled):
                self.routes.add_profile(profiled, self._profile(stems, profiled))
            self.routes.conclude()
            self._resize_slices(is_steady=not has_drifted)
            self._rows_max = max(SLICE_ROWS_LEAST, MATCHES_MAX * len(rows) // max(candidates, 1))
        self.routes.end()

    def _resize_slices(self, is_steady: bool) -> None:
        """Let slices grow while the rows are steady, and begin again when they are not."""
        self._steady_slices = self._steady_slices + 1 if is_steady else 0
        if not is_steady:
            self._slice_rows = SLICE_ROWS_MIN
        elif self._steady_slices >= STEADY_SLICES:
            self._steady_slices = 0
            self._slice_rows = min(2 * self._slice_rows, SLICE_ROWS_MAX)

    def hold_steady(self) -> None:
        """Begin with large slices, as the order of probes was learnt before."""
        self._slice_rows = SLICE_ROWS_MAX

    def _run_slice(
        self, stems: Mapping[int, SteM], group: ProbeGroup, emit: Callable[[Combinations], None]
    ) -> SliceCounts:
        counts = SliceCounts.zeros(len(self.nodes))
        root = self._root_rows(stems[self.root.stream], group.rows)
        lists: dict[int, MatchLists] = {}
        for number in group.order.current:
            stem = stems[self.nodes[number].role.stream]
            probes_before, before = stem.counts.probes, stem.counts.candidates
            seen = overlap(root.interested, self._masks[number])
            if seen.any():
                self._ask(number, root, stems, lists)
                counts.seen[number] = seen.sum()
                counts.passed[number] = any_bit(root.interested[seen]).sum()
            counts.probes[number] = stem.counts.probes - probes_before
            counts.candidates[number] = stem.counts.candidates - before
        sizes = {number: len(own) for number, own in lists.items()}
        smallest_first = sorted(range(len(self.nodes)), key=lambda n: sizes.get(n, 0))
        expansion = self._expansion(with_parents_first(smallest_first, self._parents()))
        Expansion(root, self.root, self.nodes, lists, emit).run(expansion)
        return counts

    def _root_rows(self, stem: SteM, rows: IntArray) -> RowSet:
        new = stem.new
        assert new is not None
        times = new.times_us[rows]
        return RowSet(
            stem,
            rows + stem.first_new_id,
            times,
            deadline(times, self._window_us),
            new.lineage[self.root.occurrence][rows] & self._mask,
            {ref: new.keys[ref.column] for ref in self._needed[-1]},
            rows,
        )

    def _profile(self, stems: Mapping[int, SteM], rows: IntArray) -> BoolArray:
        """Return for some rows which nodes drop them, each asked as if it were the first."""
        drops = np.zeros((len(rows), len(self.nodes)), dtype=bool)
        root = self._root_rows(stems[self.root.stream], rows)
        for number, node in enumerate(self.nodes):
            # Queries that do not need the node do not count.
            asks = overlap(root.interested, self._masks[number])
            if node.parent == -1:
                has = has_partner(root, self._probe(number, stems), np.flatnonzero(asks))
            else:
                has = self._has_path(number, root, stems)
            drops[:, number] = asks & ~has
        return drops

    def _has_path(self, number: int, root: RowSet, stems: Mapping[int, SteM]) -> BoolArray:
        """Return for rows of the root whether they have partners on the path to a node."""
        left = replace(root, interested=root.interested & self._masks[number])
        lists: dict[int, MatchLists] = {}
        path = [number]
        while self.nodes[path[0]].parent != -1:
            path.insert(0, self.nodes[path[0]].parent)
        for step in path:
            self._ask(step, left, stems, lists)
        return any_bit(left.interested)

    def _parents(self) -> list[int]:
        return [node.parent for node in self.nodes]

    def _expansion(self, order: Sequence[int]) -> ExpansionNode:
        key = tuple(order)
        if key not in self._expansions:
            self._expansions[key] = plan_expansion(self.root, self.nodes, order, self.words)
        return self._expansions[key]

    def _ask(
        self, number: int, root: RowSet, stems: Mapping[int, SteM], lists: dict[int, MatchLists]
    ) -> None:
        """Probe the SteM of a node, and drop rows that have no partner there."""
        node, mask = self.nodes[number], self._masks[number]
        if node.parent != -1 and node.parent not in lists:
            return  # no row of the parent was found for these queries
        parent = root if node.parent == -1 else lists[node.parent].distinct
        if not len(parent.ids):
            return
        lists[number] = find_matches(
            parent,
            self._probe(number, stems),
            self._needed[number],
            np.flatnonzero(overlap(parent.interested, mask)),
        )
        self._drop(number, root, lists, mask)

    def _probe(self, number: int, stems: Mapping[int, SteM]) -> Probe:
        node = self.nodes[number]
        sources = {binding.column: binding.source for binding in node.step.bindings}
        return Probe(
            stems[node.role.stream],
            node.step.pattern,
            [sources[column] for column in node.step.pattern],
            self._masks[number],
            node.role.occurrence,
            node.window_us,
            node.window_rows,
            node.role < self.root,
        )

    def _drop(self, number: int, root: RowSet, lists: dict[int, MatchLists], mask: Bitmap) -> None:
        """Take queries away from rows without a partner, from a node up to the root."""
        while True:
            parent = self.nodes[number].parent
            rows = root if parent == -1 else lists[parent].distinct
            own = lists[number]
            has = or_by_group(own.interested, own.parents, len(rows.ids))
            rows.interested &= has | ~mask
            if parent == -1:
                return
            lists[parent].interested &= lists[parent].of_match(rows.interested)
            number = parent
