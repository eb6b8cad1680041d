"""Finds classes among the new rows of a role: which rows to profile, when to search them.

The window of profiled rows, the screening of columns and the search itself are those of adaptive
filters (`fabric/tactics/class_search.py`, `mesh`); costs are counted in comparisons.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.fabric.tactics.class_search import ClassSearch
from eddyline.joins.row_attributes import RowAttributes, attribute_names
from eddyline.joins.run import Run
from eddyline.joins.search_pace import PROFILED_ROWS, SearchPace
from eddyline.mesh import Mesh, MeshOptions, SearchResult, TrainingSet
from eddyline.mesh.condense import Condensed, condense
from eddyline.mesh.cost import MeshProblem, Overheads
from eddyline.mesh.routes import ROUTE_FINDERS

# In comparisons: a test of the classifier, and a further group of rows, take as long as these.
PROBE_CLASSES = MeshOptions(
    tuples_max=6,
    iterations_max=1,
    seconds_max=0.25,
    depth_max=3,
    overheads=Overheads(test_us=0.2, route_us=0.1),
)


class ClassFinder:
    """Collects profiled rows of a role, and searches them for classes.

    Parameters
    ----------
    options
        Of the search.
    seed
        Of the search, and of which rows are profiled.

    """

    def __init__(self, options: MeshOptions = PROBE_CLASSES, seed: int | None = None) -> None:
        self.pace = SearchPace()
        self.attributes: tuple[str, ...] = ()
        self._options = options
        self._rng = np.random.default_rng(seed)
        self._layout: tuple[int, pa.Schema] | None = None
        self._batch: RowAttributes | None = None
        self._search = self._new_search()

    def begin(self, run: Run) -> bool:
        """Go on with new rows; return True if their columns are others than before."""
        self._batch = RowAttributes(run)
        layout = (len(run.keys), run.payload.schema)
        is_new, self._layout = layout != self._layout, layout
        if is_new:
            self.attributes = attribute_names(run)
            self._search = self._new_search()
        return is_new

    def end(self) -> None:
        """Let go of the rows."""
        self._batch = None

    @property
    def batch(self) -> RowAttributes:
        """The columns of the new rows that may classify them."""
        assert self._batch is not None
        return self._batch

    def choose(self, rows: IntArray) -> IntArray:
        """Return the rows of a slice that should ask every SteM; mostly none."""
        if not self.pace.may_profile or not len(rows):
            return np.zeros(0, dtype=np.int64)
        self.pace.begin_profile()
        count = min(PROFILED_ROWS, len(rows))
        return np.sort(self._rng.choice(rows, count, replace=False))

    def add(self, rows: IntArray, drops: BoolArray) -> None:
        """Add profiled rows: for each, which nodes drop it."""
        self._search.add(self.batch, rows, drops)

    def find(
        self, costs: FloatArray, current: Mesh | None
    ) -> tuple[SearchResult, TrainingSet] | None:
        """Return the best mesh for rows like those profiled; None if it is not time to search.

        Most samples show at once that no classes can pay; only the others are searched.
        """
        if not self.pace.may_search or not self._search.is_due:
            return None
        self.pace.begin_search()
        training = self._search.training_set(costs)
        condensed = condense(training, self._options.tuples_max)
        if not self._may_pay(training, condensed):
            return SearchResult(None, 0, 0.0, "no column tells the rows apart"), training
        columns = {name: training.columns[name] for name in condensed.attributes}
        training = TrainingSet(columns, training.drops, costs)
        return self._search.search(training, None, current), training

    def _may_pay(self, training: TrainingSet, condensed: Condensed) -> bool:
        """Whether rows would save enough if every training tuple had the best order for it."""
        options, every = self._options, tuple(range(len(condensed.tuples)))
        problem = MeshProblem(
            training,
            condensed.tuples,
            ROUTE_FINDERS[options.routes],
            options.overheads or Overheads(),
        )
        single_us = problem.route_of(every)[1] / training.rows
        return bool(problem.bound_us(every) < (1.0 - options.gain_min) * single_us)

    def clear(self) -> None:
        """Discard the rows collected so far."""
        self._search.clear()

    def _new_search(self) -> ClassSearch:
        positions = {name: position for position, name in enumerate(self.attributes)}
        return ClassSearch(positions, self._options, int(self._rng.integers(1 << 31)))
