"""The classes of a mesh while rows are routed by it: grouping, counting, keeping promises."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from eddyline.arrays import FloatArray, IntArray, Rows
from eddyline.fabric.operator_array import OperatorArray, RouteTrace
from eddyline.fabric.rtoken import RToken, Wheel
from eddyline.journal.events import DriftDetected, Names
from eddyline.mesh import Mesh, MeshOptions
from eddyline.operators import Batch
from eddyline.profile import CusumDetector

RUSTER_ROWS_MIN = 100
UNCLASSIFIED = -1
UNCLASSIFIED_SHARE_MAX = 0.1
UNKNOWN_VALUES = "too many rows have values that no class was learnt from"
ALL_CLASSES = "all classes together"


class ClassesInUse:
    """Groups rows by class, counts what each class costs, and detects broken promises.

    Parameters
    ----------
    mesh
        The mesh; None where all rows take the default route.
    attributes
        Positions in a batch of the columns that may classify rows, by name.
    predicates
        Number of predicates.
    seed
        Of the lottery wheels of uncertain routes.
    options
        Has the smallest ruster, and whether rows that arrive together are of one class. None: the
        defaults.

    """

    def __init__(
        self,
        mesh: Mesh | None,
        attributes: Mapping[str, int],
        predicates: int,
        seed: int,
        options: MeshOptions | None = None,
    ) -> None:
        self.mesh = mesh
        self._options = options or MeshOptions()
        classes = 0 if mesh is None else len(mesh.classes)
        #: Rows of each class, and evaluations of each predicate; the default route is the last.
        self.rows: IntArray = np.zeros(classes + 1, dtype=np.int64)
        self.seen: IntArray = np.zeros((classes + 1, predicates), dtype=np.int64)
        self._attributes = attributes
        self._predicates = predicates
        self._seed = seed
        self._wheels: dict[int, Wheel] = {}
        self._detectors = [CusumDetector() for _ in range(classes)]
        # Where all classes change at once, each of many would need long to show it by itself.
        self._common_detector = CusumDetector()
        self._unclassified_detector = CusumDetector()
        self._visits: list[FloatArray] = (
            [] if mesh is None else [np.array(own.visits) for own in mesh.classes]
        )
        self.begin_chunk()

    def begin_chunk(self) -> None:
        """Start to count the rusters of a new chunk."""
        self._chunk: list[tuple[int, RouteTrace]] = []
        self._unclassified_rows = 0

    def group(self, batch: Batch, rows: Rows | None) -> list[tuple[int, Rows | None]]:
        """Return the rows of each class; classes with too few rows here take the default route.

        If that leaves few rows for the default route too, they travel with the largest class: any
        route is correct for them, and a ruster of their own would cost more than it saves.
        """
        mesh = self.mesh
        if mesh is None:
            return [(UNCLASSIFIED, rows)]
        labels = self._classify(mesh, batch, rows)
        rows_min = self._options.ruster_rows_min or min(RUSTER_ROWS_MIN, len(labels) // 16)
        unclassified, *counts = np.bincount(labels + 1, minlength=len(mesh.classes) + 1).tolist()
        self._unclassified_rows += unclassified
        large = [label for label, count in enumerate(counts) if count and count >= rows_min]
        rest = len(labels) - sum(counts[label] for label in large)
        if rest:
            is_few = bool(large) and rest < rows_min
            taken_by = np.full(len(counts) + 1, UNCLASSIFIED)
            taken_by[[label + 1 for label in large]] = large
            taken_by[taken_by == UNCLASSIFIED] = (
                max(large, key=counts.__getitem__) if is_few else UNCLASSIFIED
            )
            labels = taken_by[labels + 1]
            large += [] if is_few else [UNCLASSIFIED]
        if len(large) == 1:
            return [(large[0], rows)]
        groups: list[tuple[int, Rows | None]] = []
        for label in large:
            own = (labels == label).nonzero()[0]
            groups.append((label, own if rows is None else rows[own]))
        return groups

    def _classify(self, mesh: Mesh, batch: Batch, rows: Rows | None) -> IntArray:
        """Return the class of each row, or of the first row of its window for all of them."""
        window_rows = self._options.correlated_rows
        if window_rows is None:
            return mesh.classify(self._columns(mesh, batch, rows))
        numbers = np.arange(batch.rows) if rows is None else rows
        _, first, window = np.unique(numbers // window_rows, return_index=True, return_inverse=True)
        labels: IntArray = mesh.classify(self._columns(mesh, batch, numbers[first]))[window]
        return labels

    def _columns(self, mesh: Mesh, batch: Batch, rows: Rows | None) -> dict[str, pa.Array]:
        return {name: batch.arrow(self._attributes[name], rows) for name in mesh.tree.attributes}

    def token(self, label: int) -> RToken:
        """Return the route of a class, with its lottery wheel if a step is uncertain."""
        assert self.mesh is not None
        route = self.mesh.classes[label].route
        if all(isinstance(step, int) for step in route):
            return RToken(route)
        if label not in self._wheels:
            self._wheels[label] = Wheel(self._predicates, self._seed + label)
        return RToken(route, self._wheels[label])

    def count(self, label: int, trace: RouteTrace) -> None:
        """Count the rows of a ruster and the evaluations they took."""
        self.rows[label] += trace.entered_count
        self.seen[label] += trace.seen
        self._chunk.append((label, trace))

    def count_others(self, trace: RouteTrace) -> None:
        """Count the rows of a ruster that was not grouped here, as of the default route."""
        self.rows[UNCLASSIFIED] += trace.entered_count
        self.seen[UNCLASSIFIED] += trace.seen

    def broken_promise(self, array: OperatorArray) -> DriftDetected | None:
        """Return the drift if rows cost clearly more than the mesh promised, or are of no class."""
        rows = sum(trace.entered_count for _, trace in self._chunk)
        if rows:
            share = self._unclassified_rows / (UNCLASSIFIED_SHARE_MAX * rows)
            self._unclassified_detector.update(share - 1.0, weight=rows)
            if self._unclassified_detector.detected:
                return DriftDetected(row_class=UNKNOWN_VALUES)
        cost_us = array.cost_us()
        totals = np.zeros(3)
        for label, trace in self._chunk:
            if label == UNCLASSIFIED or trace.entered_count == 0:
                continue
            own = np.array([float(self._visits[label] @ cost_us), float(trace.seen @ cost_us), 1])
            own[[0, 2]] *= trace.entered_count
            totals += own
            if self._breaks(self._detectors[label], own):
                return _drift(self._words(label, array), own)
        return _drift(ALL_CLASSES, totals) if self._breaks(self._common_detector, totals) else None

    def why_one_order_is_better(self, array: OperatorArray) -> str:
        """Return in words that rows of the last chunk cost more than in the best order; or ""."""
        assert self.mesh is not None
        cost_us = array.cost_us()
        own_us = single_us = rows = 0.0
        for label, trace in self._chunk:
            visits = self.mesh.classes[label].single_visits
            if label != UNCLASSIFIED and visits:
                rows += trace.entered_count
                own_us += float(trace.seen @ cost_us)
                single_us += trace.entered_count * float(np.array(visits) @ cost_us)
        if own_us <= single_us:
            return ""
        return (
            f"a row costs {own_us / rows:.2f} µs by class; "
            f"in the best order for all rows it cost {single_us / rows:.2f}"
        )

    @staticmethod
    def _breaks(detector: CusumDetector, sums: FloatArray) -> bool:
        """Whether rows have cost more than expected for too long: sums of both, and of rows."""
        expected_us, measured_us, rows = sums.tolist()
        if expected_us <= 0:
            return False
        detector.update(measured_us / expected_us - 1.0, weight=rows)
        return detector.detected

    def _words(self, label: int, array: OperatorArray) -> str:
        assert self.mesh is not None
        words = route_words_of(self.mesh, array, ())
        return f"class {words[[leaf for leaf, _ in self.mesh.tree.paths()].index(label)]}"


def _drift(row_class: str, sums: FloatArray) -> DriftDetected:
    expected_us, measured_us = (sums[:2] / sums[2]).round(4).tolist()
    return DriftDetected(row_class=row_class, expected_us=expected_us, measured_us=measured_us)


def route_words_of(mesh: Mesh | None, array: OperatorArray, default: tuple[int, ...]) -> Names:
    """Return which rows take which route, in words, for events."""
    if mesh is None:
        return (f"all rows -> {', '.join(array.names(default))}",)
    return tuple(mesh.words(array.names(range(len(array)))))
