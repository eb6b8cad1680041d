"""Runs a tree of probes: new rows of one role are joined with the SteMs of all others.

Tuples are extended depth first and in slices, so that memory is bounded by the depth of the tree and
the size of a slice, whatever the number of results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from eddyline.arrays import Bitmap, IntArray
from eddyline.joins.combinations import Combinations, RowBlock, any_bit
from eddyline.joins.match_lists import deadline
from eddyline.joins.plan import KeyRef, ProbeNode, Role, Step
from eddyline.joins.stem import SteM
from eddyline.joins.tuples import Tuples
from eddyline.joins.windows import WindowTable, window_tables
from eddyline.operators.bitmaps import bitmap_of, overlap


@dataclass
class StepCounts:
    """Work of one step: tuples that probed, candidates compared, and tuples that were kept."""

    tuples: int = 0
    candidates: int = 0
    kept: int = 0


@dataclass(frozen=True)
class ProbeTree:
    """A tree of probes with everything that does not depend on the rows.

    Parameters
    ----------
    step
        As in `ProbeNode`.
    mask, complete
        Bitmaps of the queries that pass, and of those whose roles are all filled.
    window_us
        Largest window of the role among the queries that pass; None if one has none.
    tables
        Windows that the complete queries have smaller.
    needed
        Key columns that steps below search with.
    children
        Further probes.

    """

    step: Step
    mask: Bitmap
    complete: Bitmap
    window_us: int | None
    tables: Mapping[Role, WindowTable]
    needed: frozenset[KeyRef]
    children: tuple[ProbeTree, ...]

    @classmethod
    def of(
        cls, node: ProbeNode, words: int, above_us: Mapping[Role, int | None] | None = None
    ) -> ProbeTree:
        """Return the tree below a node; `above_us` are the windows on the path to it."""
        checked_us = {**(above_us or {}), node.step.role: node.window_us}
        return cls(
            node.step,
            bitmap_of((query.slot for query in node.queries), words),
            bitmap_of((query.slot for query in node.complete), words),
            node.window_us,
            window_tables(node.complete, checked_us, words),
            frozenset(node.needed_below()),
            tuple(cls.of(child, words, checked_us) for child in node.children.values()),
        )


@dataclass
class Probing:
    """Joins the new rows of a micro-batch.

    Parameters
    ----------
    stems
        By stream number.
    emit
        Called with results.

    """

    stems: Mapping[int, SteM]
    emit: Callable[[Combinations], None]
    counts: dict[Step, StepCounts] = field(default_factory=dict)

    def run(self, tree: ProbeTree) -> None:
        """Join the new rows in the role of a root with all other roles."""
        origin = tree.step.role
        stem = self.stems[origin.stream]
        if stem.new is None:
            return
        lineage = stem.new.lineage[origin.occurrence]
        rows = np.flatnonzero(overlap(lineage, tree.mask))
        times = stem.new.times_us[rows]
        tuples = Tuples(
            {origin: rows + stem.first_new_id},
            times,
            deadline(times, tree.window_us),
            lineage[rows],
            {ref: stem.new.keys[ref.column].take(rows) for ref in tree.needed if ref.role == origin},
        )
        if len(tuples):
            self._visit(tree, tuples, origin)

    def _visit(self, tree: ProbeTree, tuples: Tuples, origin: Role) -> None:
        if tree.complete.any():
            self._emit_complete(tree, tuples)
        for child in tree.children:
            wanted = overlap(tuples.interested, child.mask)
            chosen = tuples if wanted.all() else tuples.take(wanted)
            if len(chosen):
                self._extend(child, chosen, origin)

    def _emit_complete(self, tree: ProbeTree, tuples: Tuples) -> None:
        """Hand on the tuples that are in the windows of a complete query of theirs."""
        interested = tuples.interested & tree.complete
        for role, table in tree.tables.items():
            ages_us = tuples.newest_us - self.stems[role.stream].times_us(tuples.ids[role])
            interested &= table.within(ages_us)
        kept = np.flatnonzero(any_bit(interested))
        if len(kept):
            every = np.arange(len(kept))
            blocks = {
                role: RowBlock(self.stems[role.stream], ids[kept])
                for role, ids in tuples.ids.items()
            }
            positions = dict.fromkeys(blocks, every)
            self.emit(
                Combinations(blocks, positions, tuples.newest_us[kept], interested[kept])
            )

    def _extend(self, tree: ProbeTree, tuples: Tuples, origin: Role) -> None:
        """Fill the role of a node, and go on from there."""
        step, stem = tree.step, self.stems[tree.step.role.stream]
        counts = self.counts.setdefault(step, StepCounts())
        counts.tuples += len(tuples)
        sources = {binding.column: tuples.keys[binding.source] for binding in step.bindings}
        keys = [sources[column] for column in step.pattern]
        before = stem.counts.candidates
        for probes, ids in stem.probe(step.pattern, keys, with_new=step.role < origin):
            extended = self._joined(tree, tuples, probes, ids)
            counts.kept += len(extended)
            if len(extended):
                self._visit(tree, extended, origin)
        counts.candidates += stem.counts.candidates - before

    def _joined(self, tree: ProbeTree, tuples: Tuples, probes: IntArray, ids: IntArray) -> Tuples:
        """Return tuples with matching rows, without those that no query wants."""
        role = tree.step.role
        stem = self.stems[role.stream]
        times = stem.times_us(ids)
        newest = np.maximum(tuples.newest_us[probes], times)
        ends = np.minimum(tuples.deadline_us[probes], deadline(times, tree.window_us))
        fits = np.flatnonzero(newest < ends)
        if len(fits) < len(ids):
            probes, ids, newest, ends = probes[fits], ids[fits], newest[fits], ends[fits]
        interested = tuples.interested[probes]
        interested &= stem.lineage(ids, role.occurrence, interested.shape[1])
        interested &= tree.mask
        wanted = np.flatnonzero(any_bit(interested))
        if len(wanted) < len(ids):
            probes, ids, interested = probes[wanted], ids[wanted], interested[wanted]
            newest, ends = newest[wanted], ends[wanted]
        keys = {ref: tuples.keys[ref].take(probes) for ref in tree.needed if ref in tuples.keys}
        keys |= {ref: stem.key(ids, ref.column) for ref in tree.needed if ref.role == role}
        filled = {other: rows[probes] for other, rows in tuples.ids.items()}
        return Tuples(filled | {role: ids}, newest, ends, interested, keys)
