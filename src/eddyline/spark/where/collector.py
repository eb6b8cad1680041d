"""What the driver knows of a `where`: the sum of all notes that its workers have sent."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np

from eddyline.fabric import Totals
from eddyline.fabric.knowledge import (
    ContentKnowledge,
    Knowledge,
    MeshKnowledge,
    OrderKnowledge,
    merge_knowledge,
)
from eddyline.journal import Journal, Record
from eddyline.report import ClassLine
from eddyline.spark.common.class_lines import ClassCounts, class_lines
from eddyline.spark.where.note import WorkerNote

WORKERS_MAX = 64  # those heard of last; processes come and go


class NoteCollector:
    """Collects notes; hands out totals, the journal, and what a new plan should start from.

    Notes may arrive from a listener's thread.

    Parameters
    ----------
    predicates
        Number of predicates of the router.

    """

    def __init__(self, predicates: int) -> None:
        self._totals = Totals(predicates)
        self._journal = Journal()
        self._workers: OrderedDict[str, tuple[Knowledge, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, notes: Iterable[WorkerNote]) -> None:
        """Add notes, as they arrive through the side channel."""
        with self._lock:
            for note in notes:
                self._totals.add(note.totals)
                self._journal.extend(note.records)
                self._journal.forgotten += note.records_left_out
                if note.knowledge:
                    self._workers[note.worker] = note.knowledge
                    self._workers.move_to_end(note.worker)
                while len(self._workers) > WORKERS_MAX:
                    self._workers.popitem(last=False)

    def write(self, records: Iterable[Record]) -> None:
        """Add records of driver-side decisions."""
        with self._lock:
            self._journal.extend(records)

    def totals(self) -> Totals:
        """Return a copy of the sums so far."""
        with self._lock:
            return self._totals.copy()

    def journal(self) -> Journal:
        """Return a copy of the journal."""
        with self._lock:
            journal = Journal()
            journal.extend(self._journal)
            journal.forgotten = self._journal.forgotten
            return journal

    def knowledge(self) -> tuple[Knowledge, ...]:
        """Return, for each segment, what all workers together know; empty before the first note."""
        return tuple(merge_knowledge(parts) for parts in zip(*self._newest(), strict=True))

    def _newest(self) -> list[tuple[Knowledge, ...]]:
        with self._lock:
            return list(self._workers.values())

    # --- views for the report ----------------------------------------------------------------

    def classes(self, names: Sequence[Sequence[str]]) -> list[ClassLine]:
        """Return the classes in use, with the rows of all workers that use the same."""
        lines: list[ClassLine] = []
        for knowledge, own in zip(self.knowledge(), names, strict=False):
            if isinstance(knowledge, MeshKnowledge) and knowledge.mesh is not None:
                cost_us = np.array([us or 0.0 for us in knowledge.cost_us])
                rows, seen = np.array(knowledge.class_rows), np.array(knowledge.class_seen)
                counts = ClassCounts(rows, seen, cost_us)
                lines += class_lines(knowledge.mesh, own, "in Python", counts)
        return lines

    def pairs(self) -> dict[str, str]:
        """Return the column that classifies rows for each predicate, for any worker."""
        return {
            predicate: column
            for knowledge in self.knowledge()
            if isinstance(knowledge, ContentKnowledge)
            for predicate, column in knowledge.pairs.items()
        }

    def rejected(self) -> dict[str, str]:
        """Return the columns that cannot classify rows, and why."""
        return {
            name: why
            for knowledge in self.knowledge()
            if not isinstance(knowledge, OrderKnowledge)
            for name, why in knowledge.rejected.items()
        }

    def orders(self, names: Sequence[Sequence[str]]) -> list[tuple[list[str], int]]:
        """Return the orders in use, by names, with the number of workers that use each."""
        used: Counter[tuple[str, ...]] = Counter(
            tuple(
                own[number]
                for own, knowledge in zip(names, worker, strict=True)
                for number in knowledge.order
            )
            for worker in self._newest()
        )
        return [(list(order), workers) for order, workers in used.most_common()]
