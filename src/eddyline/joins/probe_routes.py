"""In which orders the new rows of a role ask SteMs: one for all, or one for each class of rows.

A few rows now and then ask every SteM. If something in the rows tells which SteMs drop them, a
search over these profiled rows finds classes with an order each. They are tried on half of the new
rows, and adopted if the rows of that half take fewer comparisons. Whatever the classes, a row asks
every SteM until one drops it, so that results do not depend on them.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, sections 4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, IntArray
from eddyline.fabric.tactics.classes import UNCLASSIFIED
from eddyline.fabric.trials import SplitTrial
from eddyline.joins.class_finder import ClassFinder
from eddyline.joins.class_orders import ClassOrders, ProbeGroup
from eddyline.joins.probe_order import ProbeOrder
from eddyline.joins.run import Run
from eddyline.journal.events import (
    ClassProbeOrderChanged,
    ClassSearchFailed,
    Event,
    Names,
    ProbeClassesAdopted,
    ProbeClassesDropped,
    ProbeClassesFound,
    ProbeClassesReverted,
    ProbeOrderChanged,
)
from eddyline.mesh import Mesh, SearchResult, TrainingSet
from eddyline.mesh.routes import by_dynamic_programming


@dataclass
class SliceCounts:
    """What asking the SteMs came to, for each node of the tree.

    Parameters
    ----------
    seen, passed
        Rows of the root that asked, and those of them that some query still wanted afterwards.
    probes, candidates
        Probes of the SteM, and stored rows that were compared.

    """

    seen: IntArray
    passed: IntArray
    probes: IntArray
    candidates: IntArray

    @classmethod
    def zeros(cls, nodes: int) -> SliceCounts:
        """Return counts of nothing."""
        return cls(*[np.zeros(nodes, dtype=np.int64) for _ in range(4)])

    @property
    def work(self) -> IntArray:
        """Comparisons: probes, and stored rows compared."""
        return self.probes + self.candidates


class ProbeRoutes:
    """The orders of one role, and the trials of new ones.

    Parameters
    ----------
    role, names
        The role and the nodes of its join tree, in words, for events.
    default
        The order of all rows, or of rows that belong to no class.
    finder
        Finds classes; None for one order.
    seed
        Of how rows are dealt out in a trial.

    """

    def __init__(
        self,
        role: str,
        names: Names,
        default: ProbeOrder,
        finder: ClassFinder | None,
        seed: int | None = None,
    ) -> None:
        self.default = default
        self._role = role
        self.names = names
        self._finder = finder if default.learns else None
        self._rng = np.random.default_rng(seed)
        self._current = self._make(None)
        self._tried = self._current
        self._trial: SplitTrial | None = None
        self._events: list[Event] = []

    @property
    def mesh(self) -> Mesh | None:
        """The classes in use; None while all rows take one order."""
        return self._current.mesh

    @property
    def classes(self) -> int:
        """Number of classes in use; 1 for one order."""
        return len(self._current)

    def take_events(self) -> list[Event]:
        """Return the events since the last call."""
        events, self._events = self._events, []
        return events

    # --- rows --------------------------------------------------------------------------------

    def begin(self, run: Run) -> None:
        """Go on with the new rows of a micro-batch."""
        if self._finder is not None and self._finder.begin(run):
            if self.mesh is not None:
                reason = "its rows have other columns"
                self._events.append(ProbeClassesDropped(role=self._role, reason=reason))
            self._current, self._trial = self._make(None), None

    def end(self) -> None:
        """Let go of the rows of a micro-batch."""
        if self._finder is not None:
            self._finder.end()

    def deal(self, rows: IntArray) -> list[ProbeGroup]:
        """Return the rows of a slice by order; in a trial, by side and order."""
        if self._trial is None:
            return self._group(self._current, rows, 0)
        first, second = self._trial.deal(rows, self._rng)
        groups = [*self._group(self._current, first, 0), *self._group(self._tried, second, 1)]
        return [group for group in groups if len(group.rows)]

    def _group(self, orders: ClassOrders, rows: IntArray, side: int) -> list[ProbeGroup]:
        batch = None
        if self._finder is not None and orders.mesh is not None:
            batch = self._finder.batch
        return orders.group(batch, rows, side)

    def profiled(self, rows: IntArray) -> IntArray:
        """Return the rows of a slice that should ask every SteM, in search of classes."""
        return np.zeros(0, dtype=np.int64) if self._finder is None else self._finder.choose(rows)

    # --- learning ----------------------------------------------------------------------------

    def learn(self, group: ProbeGroup, counts: SliceCounts, drops: BoolArray | None) -> bool:
        """Take what became of a group into account; return True if the rows have changed.

        Parameters
        ----------
        group, counts
            The rows, and what asking came to.
        drops
            For rows that the order of the group wanted to be profiled, which nodes drop them.

        """
        work = int(counts.work.sum())
        has_drifted = group.order.detect_drift(len(group.rows), work)
        change = group.order.learn(
            len(group.rows), counts.seen, counts.passed, counts.candidates, drops
        )
        if self._finder is not None:
            self._finder.pace.add_work(work)
        if self._trial is not None:
            self._trial.add(group.side, len(group.rows), counts.work)
        if change is None:
            return has_drifted
        before, after = (
            tuple(self.names[n] for n in order) for order in (change.before, change.after)
        )
        if group.label == UNCLASSIFIED:
            self._events.append(ProbeOrderChanged(role=self._role, before=before, after=after))
        else:
            orders = self._tried if group.side else self._current
            words = orders.class_words(group.label)
            self._events.append(
                ClassProbeOrderChanged(role=self._role, row_class=words, before=before, after=after)
            )
        return has_drifted

    def add_profile(self, rows: IntArray, drops: BoolArray) -> None:
        """Add rows that asked every SteM."""
        if self._finder is not None:
            self._finder.add(rows, drops)

    def conclude(self) -> None:
        """End a trial that is over; search for classes if it is time to."""
        if self._trial is not None:
            if self._trial.is_over:
                self._decide(self._trial)
        elif self._finder is not None:
            try:
                found = self._finder.find(self.default.costs_us, self.mesh)
            except (pa.ArrowException, OverflowError, ValueError) as error:
                # Rows that cannot be learnt from must not stop the join.
                self._events.append(ClassSearchFailed(reason=f"{type(error).__name__}: {error}"))
                self._finder.clear()
                return
            if found is not None:
                self._consider(*found)

    def _consider(self, result: SearchResult, training: TrainingSet) -> None:
        """Put the result of a search on trial, if it differs from what is in use."""
        assert self._finder is not None
        tried = self._make(result.mesh)
        if _are_alike(result.mesh, self.mesh):
            self._finder.pace.slow_down()
            return
        if result.mesh is None:
            # The default order has not seen most rows lately.
            single = by_dynamic_programming(training.drops, training.cost_us)
            self.default.begin_with(single)
        else:
            self._events.append(
                ProbeClassesFound(
                    role=self._role,
                    classes=tried.words(),
                    rows=training.rows,
                    saving=round(result.saving_us, 4),
                    single=round(result.single_us, 4),
                )
            )
        self._tried = tried
        meshes = (self.mesh, result.mesh)
        self._trial = SplitTrial(self._current.words(), tried.words(), len(self.names), meshes)

    def _decide(self, trial: SplitTrial) -> None:
        """Keep the better of two ways to probe."""
        assert self._finder is not None
        costs = np.ones(len(self.names))  # comparisons are the costs
        is_kept = trial.verdict(costs) == "kept"
        before, after = trial.row_costs_us(costs)
        self._trial = None
        if is_kept and self._tried.mesh is None:
            reason = f"{before:.2f} comparisons a row by class, {after:.2f} in one order"
            self._events.append(ProbeClassesDropped(role=self._role, reason=reason))
        else:
            kind = ProbeClassesAdopted if is_kept else ProbeClassesReverted
            event = kind(
                role=self._role,
                classes=self._tried.words(),
                rows=trial.trial_rows,
                before=round(before, 4),
                after=round(after, 4),
            )
            self._events.append(event)
        self._finder.pace.slow_down()
        if is_kept:
            self._current = self._tried

    def _make(self, mesh: Mesh | None) -> ClassOrders:
        attributes = () if self._finder is None else self._finder.attributes
        return ClassOrders(mesh, self.default, attributes, self.names)


def _are_alike(found: Mesh | None, in_use: Mesh | None) -> bool:
    """Whether rows would take the same routes; words do not tell, as they leave values out."""
    if found is None or in_use is None:
        return found is in_use
    return found.is_like(in_use)
