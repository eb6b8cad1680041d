"""A join: SteMs for all streams, and for each role the probes that serve all queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eddyline.joins.combinations import Combinations
from eddyline.joins.cyclic import CyclicProbing, same_shape
from eddyline.joins.drop_probing import DropProbing
from eddyline.joins.join_tree import Node, Path, merge_trees
from eddyline.joins.plan import JoinQuery, Role, words_of
from eddyline.joins.probe_order import ProbeOrder
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.ordering import Change, Policy, Tickets

# Slices of rows after which tickets have lost most of their value.
WINDOW_SLICES = 4


class Join:
    """Joins micro-batches for many queries over the same streams.

    Parameters
    ----------
    queries
        The queries; streams that stand in several of them share one SteM.
    stems
        By stream number, the rows of earlier micro-batches.
    policy
        Decides in which order rows ask SteMs. Default: `Tickets` that forget fast.
    seed
        For whatever the policy draws.

    """

    def __init__(
        self,
        queries: Sequence[JoinQuery],
        stems: Mapping[int, SteM] | None = None,
        policy: Policy | None = None,
        seed: int | None = None,
    ) -> None:
        words = words_of(queries)
        roles = sorted({role for query in queries for role in query.roles})
        self.stems = {role.stream: SteM([]) for role in roles} | dict(stems or {})
        self._trees: list[DropProbing] = []
        self._cyclic: list[CyclicProbing] = []
        for role in roles:
            nodes, cyclic = merge_trees([q for q in queries if role in q.roles], role)
            if nodes:
                order = ProbeOrder(
                    policy or Tickets(window_batches=WINDOW_SLICES),
                    [node.parent for node in nodes],
                    [len(node.queries) for node in nodes],
                    seed,
                )
                self._trees.append(DropProbing(role, nodes, words, order))
            self._cyclic += [CyclicProbing(role, own, words) for own in same_shape(cyclic)]

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
            tree.run(self.stems, emit)
        for cyclic in self._cyclic:
            cyclic.run(self.stems, emit)
        for stem in self.stems.values():
            stem.keep_new()

    def orders(self) -> dict[Role, list[Path]]:
        """Return the order in which new rows of each role ask SteMs, as paths of the join tree."""
        return {
            tree.root: [tree.nodes[number].path for number in tree.order.current]
            for tree in self._trees
        }

    def begin_with(self, orders: Mapping[Role, Sequence[Path]]) -> None:
        """Begin with orders that were learnt before; what is not in a tree is left out of them."""
        for tree in self._trees:
            if orders.get(tree.root):
                tree.begin_with(_to_order(orders[tree.root], tree.nodes))

    def take_changes(self) -> list[tuple[Role, Change]]:
        """Return the changes of probe orders since the last call, with the role of the new rows."""
        return [(tree.root, change) for tree in self._trees for change in tree.take_changes()]


def _to_order(paths: Sequence[Path], nodes: Sequence[Node]) -> list[int]:
    """Return paths as numbers of nodes; nodes that are not among them come last."""
    numbers = {node.path: number for number, node in enumerate(nodes)}
    known = [numbers[path] for path in paths if path in numbers]
    return [*known, *[number for number in range(len(nodes)) if number not in known]]
