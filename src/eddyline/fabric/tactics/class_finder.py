"""Collects profiled rows with their attributes, and looks for classes among them."""

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
FIRST_LOOK_ROWS = 96
ROWS_WANTED = 192
LOOKS_SOON = 4


class ClassFinder:
    """A window of the newest profiled rows: what every operator does to them, and what they are.

    Parameters
    ----------
    attributes
        Columns that may tell classes apart: their names, and where they stand in a batch.
    options
        Of the search.
    seed
        Of the search.

    """

    def __init__(self, attributes: Mapping[str, int], options: MeshOptions, seed: int) -> None:
        self.attributes = dict(attributes)
        #: Attributes that were looked at and found useless, and why.
        self.rejected: dict[str, str] = {}
        self.options = options
        self._seed = seed
        self._rows: deque[tuple[dict[str, pa.Array], BoolArray, Rows]] = deque()
        # The newest batch, only to know it again: it must not live longer for that.
        self._newest: weakref.ref[Batch] | None = None
        self._rows_before = self._rows_of_newest = 0
        self._count = 0
        self._new = 0
        self._looked_at = 0
        self._is_heir = False
        #: How often it was looked for classes.
        self.looks = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_beginning(self) -> bool:
        """Whether what was found rests on few rows yet, so that more will tell more."""
        return self.looks < LOOKS_SOON

    @property
    def is_short_of_rows(self) -> bool:
        """Whether rows are worth profiling only to look for classes in them."""
        return bool(self.attributes) and self._count < ROWS_WANTED and not self._is_heir

    @property
    def is_due(self) -> bool:
        """Whether there are enough new rows to look again: as many as last time, or a window."""
        wanted = max(FIRST_LOOK_ROWS, min(self._looked_at, WINDOW_ROWS))
        return bool(self.attributes) and self._new >= wanted

    def add(self, batch: Batch, rows: Rows, drops: BoolArray) -> None:
        """Remember profiled rows; the oldest are forgotten."""
        if len(rows) == 0:
            return
        if self._newest is None or self._newest() is not batch:
            self._rows_before += self._rows_of_newest
            self._newest, self._rows_of_newest = weakref.ref(batch), batch.rows
        columns = {name: batch.arrow(at, rows) for name, at in self.attributes.items()}
        self._rows.append((columns, drops, rows + self._rows_before))
        self._count += len(rows)
        self._new += len(rows)
        while self._count - len(self._rows[0][1]) >= WINDOW_ROWS:
            self._count -= len(self._rows.popleft()[1])

    @property
    def looked(self) -> list[int]:
        """How often it was looked for classes, and in how many rows the last time."""
        return [self.looks, self._looked_at]

    def resume(self, looks: int, rows: int) -> None:
        """Go on after another's looks: the next one is worth it only in more rows than theirs."""
        self.looks = looks
        self._looked_at, self._new = min(2 * rows, WINDOW_ROWS), 0
        self._is_heir = looks > 0

    def defer(self) -> None:
        """Look again only when a whole window is new: others have found classes in more rows."""
        self.resume(LOOKS_SOON, WINDOW_ROWS)

    def forget(self) -> None:
        """Begin anew, because the rows are no longer what they were."""
        self._rows.clear()
        self._count = self._new = self._looked_at = 0
        self._is_heir = False

    def training(self, cost_us: FloatArray) -> TrainingSet:
        """Return the remembered rows as a training set, without useless attributes."""
        as_they_came = np.argsort(np.concatenate([rows for _, _, rows in self._rows]))
        drops = np.concatenate([part for _, part, _ in self._rows])[as_they_came]
        columns = {}
        for name in self.attributes:
            collected = pa.concat_arrays([part[name] for part, _, _ in self._rows])
            values = collected.take(pa.array(as_they_came))
            why = screen_attribute(values)
            if why is None:
                columns[name] = values
                self.rejected.pop(name, None)
            else:
                self.rejected[name] = why
        return TrainingSet(columns, drops, cost_us)

    def look(
        self,
        training: TrainingSet,
        seconds_max: float | None,
        current: Mesh | None = None,
        progress: Progress | None = None,
    ) -> SearchResult:
        """Search for a mesh among the remembered rows, for at most so long."""
        self.looks += 1
        self._looked_at, self._new = self._count, 0
        self._seed += 1
        options = self.options
        if seconds_max is not None:
            limits = (seconds_max, options.seconds_max or seconds_max)
            options = dataclasses.replace(options, seconds_max=min(limits))
        found = find_mesh(training, options, self._seed, progress, current)
        used = found.mesh.tree.attributes if found.mesh else []
        for attribute in training.columns:
            if attribute not in used:
                self.rejected[attribute] = NOT_WORTH_ITS_COST
            else:
                self.rejected.pop(attribute, None)
        return found
