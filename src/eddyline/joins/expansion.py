"""Output generation: match lists are combined to results, smallest lists first.

Every row that is combined has partners in all roles that its queries need, because rows without
were dropped while probing. So the work does not depend on the order in which SteMs were probed
(Property 8.1); dead ends remain only where windows of three or more rows, or queries, disagree.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, section 8.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import Bitmap, Bitmaps, FloatArray, IntArray
from eddyline.index.index import Ranges
from eddyline.joins.bounds import MaskedBound, admits, bounds_of
from eddyline.joins.combinations import (
    Combinations,
    RowBlock,
    any_bit,
    shared_bitmap,
    take_bitmaps,
)
from eddyline.joins.join_tree import Node, largest_window
from eddyline.joins.match_lists import MatchLists, RowSet
from eddyline.joins.plan import JoinQuery, KeyRef, Role
from eddyline.joins.windows import WindowTable, row_tables, window_tables, within_rows
from eddyline.operators.bitmaps import bitmap_of, overlap

TUPLES_MAX = 1 << 17


@dataclass
class ExpansionNode:
    """A node of the tree of expansions: which node of the join tree is combined next.

    Parameters
    ----------
    number
        Of the join tree's node; -1 at the root.
    mask, complete
        Queries that need it, and queries that need nothing more.
    tables
        Windows of the complete queries that are smaller than what was checked.
    row_tables
        Windows of rows of the complete queries.
    bounds
        Comparisons between its rows and those combined before.
    children
        What is combined after it.

    """

    number: int
    mask: Bitmap
    complete: Bitmap
    tables: Mapping[Role, WindowTable]
    row_tables: Mapping[Role, WindowTable]
    bounds: Sequence[MaskedBound] = ()
    children: list[ExpansionNode] = field(default_factory=list)


def plan_expansion(
    root: Role, nodes: Sequence[Node], order: Sequence[int], words: int
) -> ExpansionNode:
    """Return how the nodes of a join tree are combined, in a given order, for all its queries.

    Parameters
    ----------
    root
        Role of the new rows.
    nodes, order
        The join tree, and an order of its nodes in which parents come first.
    words
        Number of words in bitmaps of queries.

    """
    queries: dict[int, JoinQuery] = {q.slot: q for node in nodes for q in node.queries}
    rank = {number: position for position, number in enumerate(order)}
    needs: dict[int, list[int]] = {slot: [] for slot in queries}
    for number in sorted(range(len(nodes)), key=rank.__getitem__):
        for query in nodes[number].queries:
            needs[query.slot].append(number)

    def make(
        number: int, slots: list[int], depth: int, filled: dict[Role, int | None]
    ) -> ExpansionNode:
        done = [slot for slot in slots if len(needs[slot]) == depth]
        node = ExpansionNode(
            number,
            bitmap_of(slots, words),
            bitmap_of(done, words),
            window_tables([queries[slot] for slot in done], filled, words),
            row_tables([queries[slot] for slot in done], words),
        )
        following: dict[int, list[int]] = {}
        for slot in slots:
            if len(needs[slot]) > depth:
                following.setdefault(needs[slot][depth], []).append(slot)
        if number >= 0:
            own = [queries[slot] for slot in slots]
            node.bounds = bounds_of(own, nodes[number].role, filled, words)
        node.children = [
            make(child, own, depth + 1, {**filled, nodes[child].role: nodes[child].window_us})
            for child, own in following.items()
        ]
        return node

    return make(-1, list(queries), 0, {root: largest_window(list(queries.values()), root)})


@dataclass(frozen=True)
class Partial:
    """Partial results: positions in the rows of the root, and in match lists.

    Parameters
    ----------
    positions
        By node number, positions in its match lists; -1 holds positions of root rows.
    newest_us, deadline_us
        As in `Tuples`.
    interested
        Bitmaps of the queries that want each; a single one if all are wanted by the same.

    """

    positions: dict[int, IntArray]
    newest_us: IntArray
    deadline_us: IntArray
    interested: Bitmaps

    def __len__(self) -> int:
        return len(self.newest_us)

    def wanted_by(self, mask: Bitmap) -> Partial:
        """Return those that some of the queries want."""
        wanted = overlap(self.interested, mask)
        if wanted.all():
            return self
        rows = np.zeros(0, np.int64) if len(wanted) < len(self) else np.flatnonzero(wanted)
        return Partial(
            {number: own[rows] for number, own in self.positions.items()},
            self.newest_us[rows],
            self.deadline_us[rows],
            take_bitmaps(self.interested, rows),
        )


class Expansion:
    """Combines match lists.

    Parameters
    ----------
    root
        The new rows.
    root_role, nodes
        The join tree.
    lists
        Match lists of the nodes that were probed, by number.
    emit
        Called with results.

    """

    def __init__(
        self,
        root: RowSet,
        root_role: Role,
        nodes: Sequence[Node],
        lists: Mapping[int, MatchLists],
        emit: Callable[[Combinations], None],
    ) -> None:
        self._root = root
        self._root_role = root_role
        self._nodes = nodes
        self._lists = lists
        self._emit = emit
        self._blocks = {
            number: RowBlock(own.distinct.stem, own.distinct.ids) for number, own in lists.items()
        }
        self._blocks[-1] = RowBlock(root.stem, root.ids)
        self._interests: dict[int, Bitmaps] = {}
        self._columns: dict[tuple[int, int], FloatArray] = {}
        #: Combinations made on the way, results included.
        self.combined = 0

    def run(self, plan: ExpansionNode) -> None:
        """Combine everything that a plan asks for."""
        alive = np.flatnonzero(any_bit(self._root.interested))
        if len(alive):
            root = self._root
            start = Partial(
                {-1: alive},
                root.times_us[alive],
                root.deadline_us[alive],
                shared_bitmap(root.interested[alive]),
            )
            self._visit(plan, start)

    def _visit(self, node: ExpansionNode, partial: Partial) -> None:
        if node.complete.any():
            self._finish(node, partial)
        for child in node.children:
            if child.number in self._lists:
                chosen = partial.wanted_by(child.mask)
                if len(chosen):
                    self._combine(child, chosen)

    def _combine(self, node: ExpansionNode, partial: Partial) -> None:
        """Combine partial results with the match lists of a node, in slices of bounded size."""
        lists = self._lists[node.number]
        parent = self._parent_rows(node.number, partial)
        starts = lists.offsets[parent]
        counts = lists.offsets[parent + 1] - starts
        ends = np.cumsum(counts)
        begin = 0
        while begin < len(partial):
            before = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + TUPLES_MAX, side="right")))
            numbers = np.arange(begin, end)
            ranges = Ranges(numbers, starts[begin:end], counts[begin:end])
            self._go_on(node, partial, *ranges.expand())
            begin = end

    def _go_on(
        self, node: ExpansionNode, partial: Partial, tuples: IntArray, matches: IntArray
    ) -> None:
        lists, interest = self._lists[node.number], self._interest(node.number)
        newest = np.maximum(partial.newest_us[tuples], lists.times_us[matches])
        deadline = np.minimum(partial.deadline_us[tuples], lists.deadline_us[matches])
        interested = take_bitmaps(partial.interested, tuples) & take_bitmaps(interest, matches)
        interested &= node.mask
        if node.bounds:
            interested = self._within_bounds(node, partial, tuples, matches, interested)
        is_kept = newest < deadline
        is_kept &= any_bit(interested)
        if not is_kept.all():
            kept = np.flatnonzero(is_kept)
            tuples, matches, newest = tuples[kept], matches[kept], newest[kept]
            deadline, interested = deadline[kept], take_bitmaps(interested, kept)
        self.combined += len(tuples)
        if not len(tuples):
            return
        positions = {number: own[tuples] for number, own in partial.positions.items()}
        positions[node.number] = matches
        self._visit(node, Partial(positions, newest, deadline, interested))

    def _within_bounds(
        self,
        node: ExpansionNode,
        partial: Partial,
        tuples: IntArray,
        matches: IntArray,
        interested: Bitmaps,
    ) -> Bitmaps:
        """Return the queries whose comparisons admit combinations."""
        interested = np.broadcast_to(interested, (len(tuples), interested.shape[1])).copy()
        numbers = {self._role(number): number for number in [*partial.positions, node.number]}

        def column(ref: KeyRef) -> FloatArray:
            number = numbers[ref.role]
            if number == node.number:
                rows = self._lists[number].row_of(matches)
            else:
                rows = partial.positions[number][tuples]
                rows = rows if number == -1 else self._lists[number].row_of(rows)
            values: FloatArray = self._values(number, ref.column)[rows]
            return values

        for bound, queries in node.bounds:
            interested[~admits(bound, column)] &= ~queries
        return interested

    def _values(self, number: int, column: int) -> FloatArray:
        """Return a compared column of the rows of a node."""
        if (number, column) not in self._columns:
            block = self._blocks[number]
            self._columns[number, column] = block.stem.values(block.ids, column)
        return self._columns[number, column]

    def _interest(self, number: int) -> Bitmaps:
        """Return the queries that want each match of a node, and its row."""
        if number not in self._interests:
            lists = self._lists[number]
            interested = lists.interested
            if lists.distinct.interested is not interested:
                interested = interested & lists.of_match(lists.distinct.interested)
            self._interests[number] = shared_bitmap(interested)
        return self._interests[number]

    def _parent_rows(self, number: int, partial: Partial) -> IntArray:
        """Return the positions of the rows whose match lists are to be combined."""
        parent = self._nodes[number].parent
        if parent == -1:
            return partial.positions[-1]
        return self._lists[parent].row_of(partial.positions[parent])

    def _finish(self, node: ExpansionNode, partial: Partial) -> None:
        """Hand on the results that are in the windows of a complete query of theirs."""
        interested = partial.interested & node.complete
        blocks, positions = {}, {}
        for number, own in partial.positions.items():
            role = self._role(number)
            blocks[role] = self._blocks[number]
            positions[role] = own if number == -1 else self._lists[number].row_of(own)
        for role, table in node.tables.items():
            number = next(n for n in partial.positions if self._role(n) == role)
            rows = self._root if number == -1 else self._lists[number].distinct
            within = table.within(partial.newest_us - rows.times_us[positions[role]])
            interested = interested & within
        if node.row_tables:
            rows_of = {role: (b.stem, b.ids[positions[role]]) for role, b in blocks.items()}
            interested = within_rows(node.row_tables, rows_of, interested)
        newest, is_kept = partial.newest_us, any_bit(interested)
        if not is_kept.all():
            kept = np.flatnonzero(is_kept) if len(is_kept) == len(newest) else np.zeros(0, np.int64)
            positions = {role: own[kept] for role, own in positions.items()}
            newest, interested = newest[kept], take_bitmaps(interested, kept)
        if len(newest):
            self._emit(Combinations(blocks, positions, newest, interested))

    def _role(self, number: int) -> Role:
        return self._root_role if number == -1 else self._nodes[number].role
