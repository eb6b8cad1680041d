"""A join: SteMs for all streams, and for each role the probes that serve all queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eddyline.joins.combinations import Combinations
from eddyline.joins.drop_probing import DropProbing
from eddyline.joins.join_tree import merge_trees
from eddyline.joins.plan import JoinQuery, Role, Step, default_order, plan_probes, words_of
from eddyline.joins.probing import Probing, ProbeTree, StepCounts
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM


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
        roles = sorted({role for query in queries for role in query.roles})
        self.stems = {role.stream: SteM([]) for role in roles} | dict(stems or {})
        self._trees: list[DropProbing] = []
        self._sequences: list[ProbeTree] = []
        for role in roles:
            nodes, cyclic = merge_trees([q for q in queries if role in q.roles], role)
            if nodes:
                self._trees.append(DropProbing(role, nodes, words))
            if cyclic:
                self._sequences.append(_sequence(cyclic, role, words))
        #: Work of each step of cyclic queries so far.
        self.counts: dict[Step, StepCounts] = {}

    def run(self, new: Mapping[int, Run], emit: Callable[[Combinations], None]) -> None:
        """Join the rows of a micro-batch with each other and with all earlier ones; keep them.

        Parameters
        ----------
        new
            By stream number, the new rows; streams without any are left out.
        emit
            Called with results.

        """
        for stream, run in new.items():
            self.stems[stream].new = run
        for tree in self._trees:
            tree.run(self.stems, range(len(tree.nodes)), emit)
        probing = Probing(self.stems, emit, self.counts)
        for sequence in self._sequences:
            probing.run(sequence)
        for stem in self.stems.values():
            stem.keep_new()


def _sequence(queries: Sequence[JoinQuery], origin: Role, words: int) -> ProbeTree:
    orders = {(query.slot, origin): default_order(query, origin) for query in queries}
    return ProbeTree.of(plan_probes(queries, orders)[origin], words)
