"""A join of one space: SteMs for its streams, and the plan of probes for its queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eddyline.joins.plan import JoinQuery, Step, default_order, plan_probes, words_of
from eddyline.joins.probing import Probing, ProbeTree, StepCounts
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.joins.tuples import Tuples


class Join:
    """Joins micro-batches for many queries over the same streams.

    Parameters
    ----------
    queries
        The queries; streams that stand in several of them share one SteM.
    stems
        By stream number, the rows of earlier micro-batches.

    """

    def __init__(
        self, queries: Sequence[JoinQuery], stems: Mapping[int, SteM] | None = None
    ) -> None:
        words = words_of(queries)
        streams = {role.stream for query in queries for role in query.roles}
        self.stems = {stream: SteM([]) for stream in streams} | dict(stems or {})
        orders = {
            (query.slot, origin): default_order(query, origin)
            for query in queries
            for origin in query.roles
        }
        roots = plan_probes(queries, orders)
        self._trees = [ProbeTree.of(root, words) for root in roots.values()]
        #: Work of each step so far.
        self.counts: dict[Step, StepCounts] = {}

    def run(self, new: Mapping[int, Run], emit: Callable[[Tuples], None]) -> None:
        """Join the rows of a micro-batch with each other and with all earlier ones; keep them.

        Parameters
        ----------
        new
            By stream number, the new rows; streams without any are left out.
        emit
            Called with tuples that are results of the queries they interest.

        """
        for stream, run in new.items():
            self.stems[stream].new = run
        probing = Probing(self.stems, emit, self.counts)
        for tree in self._trees:
            probing.run(tree)
        for stem in self.stems.values():
            stem.keep_new()
