"""A window of the newest profiled rows with their attributes, and the search for classes in it."""

from __future__ import annotations

import dataclasses
import weakref
from collections import deque
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, FloatArray, Rows
from eddyline.attributes.screening import NOT_WORTH_ITS_COST, screen_attribute
from eddyline.mesh import Mesh, MeshOptions, Progress, SearchResult, TrainingSet, find_mesh
from eddyline.operators import Batch

WINDOW_ROWS = 1_000
FIRST_SEARCH_ROWS = 96
ROWS_WANTED = 192
EARLY_SEARCHES = 4


class ClassSearch:
    """Collects profiled rows, and searches them for classes with routes of their own.

    Parameters
    ----------
    attributes
        Columns that may classify rows: their names, and positions in a batch.
    options
        Of the search.
    seed
        Of the search.

    """

    def __init__(self, attributes: Mapping[str, int], options: MeshOptions, seed: int) -> None:
        self.attributes = dict(attributes)
        #: Columns that cannot classify rows, and why.
        self.rejected: dict[str, str] = {}
        #: Number of searches so far.
        self.searches = 0
        #: Rows of the last search.
        self.searched_rows = 0
        self._options = options
        self._seed = seed
        self._window: deque[tuple[dict[str, pa.Array], BoolArray, Rows]] = deque()
        # The newest batch, only to recognise it: the reference must not keep it alive.
        self._newest: weakref.ref[Batch] | None = None
        self._rows_before = self._rows_of_newest = 0
        self._row_count = 0
        self._new_rows = 0
        self._is_restored = False

    def __len__(self) -> int:
        return self._row_count

    @property
    def is_early(self) -> bool:
        """Whether the searches so far rest on few rows, so that more rows will tell more."""
        return self.searches < EARLY_SEARCHES

    @property
    def is_short_of_rows(self) -> bool:
        """Whether rows are worth profiling only to search for classes among them."""
        return bool(self.attributes) and self._row_count < ROWS_WANTED and not self._is_restored

    @property
    def is_due(self) -> bool:
        """Whether there are enough new rows: as many as in the last search, or a window."""
        wanted = max(FIRST_SEARCH_ROWS, min(self.searched_rows, WINDOW_ROWS))
        return bool(self.attributes) and self._new_rows >= wanted

    def add(self, batch: Batch, rows: Rows, drops: BoolArray) -> None:
        """Add profiled rows to the window; the oldest leave it."""
        if len(rows) == 0:
            return
        if self._newest is None or self._newest() is not batch:
            self._rows_before += self._rows_of_newest
            self._newest, self._rows_of_newest = weakref.ref(batch), batch.rows
        columns = {name: batch.arrow(at, rows) for name, at in self.attributes.items()}
        self._window.append((columns, drops, rows + self._rows_before))
        self._row_count += len(rows)
        self._new_rows += len(rows)
        while self._row_count - len(self._window[0][1]) >= WINDOW_ROWS:
            self._row_count -= len(self._window.popleft()[1])

    def restore(self, searches: int, searched_rows: int) -> None:
        """Continue after another router's searches: the next one must see more rows than theirs."""
        self.searches = searches
        self.searched_rows, self._new_rows = min(2 * searched_rows, WINDOW_ROWS), 0
        self._is_restored = searches > 0

    def postpone(self) -> None:
        """Search again only when a whole window is new, because the classes in use are restored."""
        self.restore(EARLY_SEARCHES, WINDOW_ROWS)

    def clear(self) -> None:
        """Discard all rows, because the rows have changed."""
        self._window.clear()
        self._row_count = self._new_rows = self.searched_rows = 0
        self._is_restored = False

    def training_set(self, cost_us: FloatArray) -> TrainingSet:
        """Return the rows of the window, without columns that cannot classify rows."""
        arrival = np.argsort(np.concatenate([rows for _, _, rows in self._window]))
        drops = np.concatenate([part for _, part, _ in self._window])[arrival]
        columns = {}
        for name in self.attributes:
            collected = pa.concat_arrays([part[name] for part, _, _ in self._window])
            values = collected.take(pa.array(arrival))
            reason = screen_attribute(values)
            if reason is None:
                columns[name] = values
                self.rejected.pop(name, None)
            else:
                self.rejected[name] = reason
        return TrainingSet(columns, drops, cost_us)

    def search(
        self,
        training: TrainingSet,
        seconds_max: float | None,
        current: Mesh | None = None,
        progress: Progress | None = None,
    ) -> SearchResult:
        """Search for a mesh among the rows of the window, for at most so long."""
        self.searches += 1
        self.searched_rows, self._new_rows = self._row_count, 0
        self._seed += 1
        options = self._options
        if seconds_max is not None:
            limits = (seconds_max, options.seconds_max or seconds_max)
            options = dataclasses.replace(options, seconds_max=min(limits))
        result = find_mesh(training, options, self._seed, progress, current)
        used = result.mesh.tree.attributes if result.mesh else []
        for attribute in training.columns:
            if attribute not in used:
                self.rejected[attribute] = NOT_WORTH_ITS_COST
            else:
                self.rejected.pop(attribute, None)
        return result
