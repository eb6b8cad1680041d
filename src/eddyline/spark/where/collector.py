"""What the driver knows of a `where`: the sum of all notes that its workers have sent."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from eddyline.fabric import Totals
from eddyline.fabric.tactics.single_order import pack_tuples, unpack_tuples
from eddyline.journal import Journal, Record
from eddyline.mesh import Mesh
from eddyline.ordering.static import ordering_cost
from eddyline.report.model import ClassLine
from eddyline.spark.common.class_lines import class_lines

TUPLES_MAX = 1_000
WORKERS_MAX = 64  # those heard of last; processes come and go


class Learnt:
    """Collects notes; hands out totals, the journal, and what a new plan should start from.

    Parameters
    ----------
    predicates
        How many predicates the router has.

    """

    def __init__(self, predicates: int) -> None:
        self.totals = Totals(predicates)
        self.journal = Journal()
        self._newest: OrderedDict[str, list[dict[str, Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, notes: Iterable[dict[str, Any]]) -> None:
        """Take notes into account; they may arrive from a listener's thread."""
        with self._lock:
            for note in notes:
                self.totals.add(Totals.from_dict(note["totals"]))
                self.journal.extend(Record.from_dict(record) for record in note["records"])
                self.journal.forgotten += note["records_left_out"]
                if note["knowledge"]:
                    self._newest[note["worker"]] = note["knowledge"]
                    self._newest.move_to_end(note["worker"])
                while len(self._newest) > WORKERS_MAX:
                    self._newest.popitem(last=False)

    def snapshot(self) -> tuple[Totals, Journal]:
        """Return copies of the totals and the journal that nobody writes to any more."""
        with self._lock:
            totals, journal = Totals(self.totals.predicates), Journal()
            totals.add(self.totals)
            journal.extend(self.journal)
            journal.forgotten = self.journal.forgotten
            return totals, journal

    def knowledge(self) -> list[dict[str, Any]]:
        """Return, for each segment, the best of the workers' orders, mean costs, pooled tuples."""
        with self._lock:
            workers = list(self._newest.values())
        if not workers:
            return []
        return [self._pool(segment) for segment in zip(*workers, strict=True)]

    @staticmethod
    def _pool(known: Sequence[dict[str, Any]]) -> dict[str, Any]:
        filters = len(known[0]["order"])
        costs = []
        for by_worker in zip(*(worker["cost_us"] for worker in known), strict=True):
            measured = [us for us in by_worker if us is not None]
            costs.append(sum(measured) / len(measured) if measured else None)
        share = TUPLES_MAX // len(known) + 1
        tuples = np.concatenate(
            [unpack_tuples(worker["tuples"], filters)[-share:] for worker in known]
        )
        # Mixed, since a window keeps the newest: otherwise the last worker's alone would be left.
        tuples = np.random.default_rng(0).permutation(tuples)
        orders = Counter(tuple(worker["order"]) for worker in known)
        order = max(orders, key=lambda candidate: orders[candidate])
        if len(tuples):
            cost_us = np.array([1.0 if us is None else max(us, 1e-4) for us in costs])
            order = min(orders, key=lambda candidate: ordering_cost(candidate, tuples, cost_us))
        expected = [worker.get("expected") for worker in known if tuple(worker["order"]) == order]
        pooled = {
            "order": list(order),
            "cost_us": costs,
            "tuples": pack_tuples(tuples),
            "expected": max(expected, key=_rows_expected),
        }
        # Classes, or what content-based routing knows, are taken from whoever saw most rows.
        wisest = max(known, key=_rows_classified)
        return {**wisest, **pooled}

    def write(self, records: Iterable[Record]) -> None:
        """Add records of decisions that were made on the driver."""
        with self._lock:
            self.journal.extend(records)

    def classes(self, names: Sequence[Sequence[str]]) -> list[ClassLine]:
        """Return the classes in use, with the rows of all workers that use the same."""
        lines: list[ClassLine] = []
        for known, own in zip(self.knowledge(), names, strict=False):
            if not known.get("mesh"):
                continue
            mesh = Mesh.from_dict(known["mesh"])
            rows = np.zeros(len(mesh.classes) + 1, dtype=np.int64)
            seen = np.zeros((len(mesh.classes) + 1, len(own)), dtype=np.int64)
            with self._lock:
                for segments in self._newest.values():
                    for segment in segments:
                        if segment.get("mesh") == known["mesh"]:
                            rows += np.array(segment["class_rows"])
                            seen += np.array(segment["class_seen"])
            cost_us = np.array([us or 0.0 for us in known["cost_us"]])
            lines += class_lines(mesh, own, "in Python", rows, seen @ cost_us)
        return lines

    def pairs(self) -> dict[str, str]:
        """Return which column classifies rows for which predicate, for any worker."""
        with self._lock:
            return {
                predicate: column
                for segments in self._newest.values()
                for segment in segments
                for predicate, column in segment.get("pairs", {}).items()
            }

    def rejected(self) -> dict[str, str]:
        """Return the columns that were found to tell nothing, and why."""
        with self._lock:
            return {
                name: why
                for segments in self._newest.values()
                for segment in segments
                for name, why in segment.get("rejected", {}).items()
            }

    def orders(self, names: Sequence[Sequence[str]]) -> list[tuple[list[str], int]]:
        """Return the orders in use, by names, with the number of workers that use each."""
        with self._lock:
            workers = list(self._newest.values())
        used: Counter[tuple[str, ...]] = Counter()
        for segments in workers:
            used[
                tuple(
                    own[filter_]
                    for own, segment in zip(names, segments, strict=True)
                    for filter_ in segment["order"]
                )
            ] += 1
        return [(list(order), workers_) for order, workers_ in used.most_common()]


def _rows_expected(expected: dict[str, Any] | None) -> float:
    return sum(expected["seen"]) if expected else 0.0


def _rows_classified(known: dict[str, Any]) -> int:
    has_mesh = bool(known.get("mesh"))
    return sum(known.get("class_rows", ())) if has_mesh else -1
