"""What the driver knows of a `where`: the sum of all notes that its workers have sent."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence

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
from eddyline.report import ActionLine, ClassLine
from eddyline.spark.common.class_lines import ClassCounts, class_lines
from eddyline.spark.where.note import WorkerNote

WORKERS_MAX = 64  # those heard of last; processes come and go
ACTIONS_MAX = 50  # lines of their own in the report; earlier ones are added up in one
EARLIER = "earlier"


class NoteCollector:
    """Collects notes; hands out totals, the journal, and what a new plan should start from.

    Notes may arrive from a listener's thread.

    Parameters
    ----------
    predicates
        Number of predicates of the router.

    """

    def __init__(self, predicates: int) -> None:
        #: Called after notes have arrived, with everything known then.
        self.on_notes: Callable[[tuple[Knowledge, ...]], None] | None = None
        self._totals = Totals(predicates)
        self._actions: OrderedDict[str, ActionLine] = OrderedDict()
        self._journal = Journal()
        self._workers: OrderedDict[str, tuple[Knowledge, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, notes: Iterable[WorkerNote], action: str) -> None:
        """Add the notes of an action or a micro-batch, as they arrive through the side channel.

        Parameters
        ----------
        notes
            All of them.
        action
            What was run, in words; the micro-batches of a stream have the same.

        """
        with self._lock:
            sums = Totals(self._totals.predicates)
            for note in notes:
                self._totals.add(note.totals)
                sums.add(note.totals)
                self._journal.extend(note.records)
                self._journal.forgotten += note.records_left_out
                if note.knowledge:
                    self._workers[note.worker] = note.knowledge
                    self._workers.move_to_end(note.worker)
                while len(self._workers) > WORKERS_MAX:
                    self._workers.popitem(last=False)
            self._add_action(
                ActionLine(
                    action,
                    runs=1,
                    rows=sums.rows,
                    kept=sums.kept,
                    evaluations=int(sums.seen.sum() + sums.profiled.sum()),
                    busy_us=float(sums.busy_us.sum() + sums.overhead_us),
                )
            )
        if self.on_notes is not None:
            self.on_notes(self.knowledge())

    def _add_action(self, line: ActionLine) -> None:
        before = self._actions.get(line.name)
        self._actions[line.name] = line if before is None else before.plus(line)
        if len(self._actions) > ACTIONS_MAX:
            oldest = next(name for name in self._actions if name != EARLIER)
            earlier = self._actions.pop(EARLIER, ActionLine(EARLIER))
            self._actions[EARLIER] = earlier.plus(self._actions.pop(oldest))
            self._actions.move_to_end(EARLIER, last=False)

    def actions(self) -> list[ActionLine]:
        """Return what each action, and each stream, came to."""
        with self._lock:
            return list(self._actions.values())

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
