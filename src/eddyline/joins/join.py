"""A join: SteMs for all streams, and for each role the probes that serve all queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eddyline.index.tuner import Tuner
from eddyline.joins.class_finder import PROBE_CLASSES, ClassFinder
from eddyline.joins.combinations import Combinations
from eddyline.joins.cyclic import CyclicProbing, same_shape
from eddyline.joins.drop_probing import DropProbing
from eddyline.joins.join_tree import Node, Path, merge_trees, path_words, role_words
from eddyline.joins.plan import JoinQuery, Role, words_of
from eddyline.joins.probe_order import ProbeOrder
from eddyline.joins.probe_routes import ProbeRoutes
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.journal.events import Event
from eddyline.mesh import MeshOptions
from eddyline.ordering import Policy, Tickets

# Slices of rows after which tickets have lost most of their value.
WINDOW_SLICES = 4


class JoinWords:
    """Names what events are about; a join that knows better names has a subclass."""

    def role(self, role: Role) -> str:
        """Return a role in words."""
        return role_words(role)

    def path(self, path: Path) -> str:
        """Return a path in words; paths of a tree that differ have different words."""
        return path_words(path)

    def state(self, stream: int) -> str:
        """Return the SteM of a stream in words."""
        return f"stream {stream}"

    def columns(self, stream: int) -> Sequence[str]:
        """Return the names of the join columns of a stream; empty if they have none."""
        return ()


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
        For whatever the policy draws, and for the search of classes.
    classes
        Parameters of the search for classes of new rows with orders of their own; None for one
        order.
    routes
        Orders and classes that a join of the same queries has learnt, by role; used and changed
        further where the join tree is the same.
    words
        Names roles and paths; routes are taken over only where the names are the same.
    tuner
        Tunes the indexes of SteMs. Default: a new one.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from eddyline.joins.keys import key_column
    >>> from eddyline.joins.plan import KeyRef
    >>> def rows(*keys):
    ...     wanted = {0: np.ones((len(keys), 1), dtype=np.uint64)}  # by query 0
    ...     columns = pa.record_batch({"k": pa.array(keys)})
    ...     times = np.zeros(len(keys), dtype=np.int64)
    ...     return Run([key_column(columns["k"])], times, wanted, columns)
    >>> light, temp = Role(0), Role(1)
    >>> equal = frozenset([KeyRef(light, 0), KeyRef(temp, 0)])
    >>> join = Join([JoinQuery(0, (light, temp), (equal,), {light: 10, temp: 10})])
    >>> join.run({light.stream: rows(1, 2)}, print)
    >>> join.run({temp.stream: rows(2, 2, 3)}, lambda found: print(len(found), "results"))
    2 results

    """

    def __init__(
        self,
        queries: Sequence[JoinQuery],
        stems: Mapping[int, SteM] | None = None,
        policy: Policy | None = None,
        seed: int | None = None,
        classes: MeshOptions | None = PROBE_CLASSES,
        routes: Mapping[Role, ProbeRoutes] | None = None,
        words: JoinWords | None = None,
        tuner: Tuner | None = None,
    ) -> None:
        words, bitmap_words = words or JoinWords(), words_of(queries)
        roles = sorted({role for query in queries for role in query.roles})
        self.stems = {role.stream: SteM([]) for role in roles} | dict(stems or {})
        self.tuner = tuner or Tuner()
        self._tuned: list[Event] = []
        for stream, stem in self.stems.items():
            stem.name, stem.tuner = words.state(stream), self.tuner
            self.tuner.name_columns(stem.name, words.columns(stream))
        self._trees: list[DropProbing] = []
        self._cyclic: list[CyclicProbing] = []
        for role in roles:
            nodes, cyclic = merge_trees([q for q in queries if role in q.roles], role)
            if nodes:
                names = tuple(words.path(node.path) for node in nodes)
                known = (routes or {}).get(role)
                is_known = known is not None and known.names == names
                if known is None or not is_known:
                    order = ProbeOrder(
                        policy or Tickets(window_batches=WINDOW_SLICES),
                        [node.parent for node in nodes],
                        [len(node.queries) for node in nodes],
                        seed,
                    )
                    finder = None if classes is None else ClassFinder(classes, seed)
                    known = ProbeRoutes(words.role(role), names, order, finder, seed)
                tree = DropProbing(role, nodes, bitmap_words, known)
                if is_known:
                    tree.hold_steady()
                self._trees.append(tree)
            self._cyclic += [CyclicProbing(role, own, bitmap_words) for own in same_shape(cyclic)]

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
            stem = self.stems[stream]
            stem.new = run
            if run.keys:
                run.configuration = self.tuner.configuration(stem.name, run.columns)
            self.tuner.arrived(stem.name, len(run))
        for tree in self._trees:
            tree.run(self.stems, emit)
        for cyclic in self._cyclic:
            cyclic.run(self.stems, emit)
        for stem in self.stems.values():
            stem.keep_new()
        self._tuned += self.tuner.tune(
            {stem.name: stem.partitions() for stem in self.stems.values()}
        )

    def orders(self) -> dict[Role, list[Path]]:
        """Return the order in which new rows of each role ask SteMs, as paths of the join tree."""
        return {
            tree.root: [tree.nodes[number].path for number in tree.routes.default.current]
            for tree in self._trees
        }

    def begin_with(self, orders: Mapping[Role, Sequence[Path]]) -> None:
        """Begin with orders that were learnt before; what is not in a tree is left out of them."""
        for tree in self._trees:
            if orders.get(tree.root):
                tree.routes.default.begin_with(_to_order(orders[tree.root], tree.nodes))
                tree.hold_steady()

    def routes(self) -> dict[Role, ProbeRoutes]:
        """Return the orders and classes of each role, for a later join of the same queries."""
        return {tree.root: tree.routes for tree in self._trees}

    def take_events(self) -> list[Event]:
        """Return the changes of probe orders, classes and indexes since the last call."""
        tuned, self._tuned = self._tuned, []
        return [*[e for tree in self._trees for e in tree.routes.take_events()], *tuned]


def _to_order(paths: Sequence[Path], nodes: Sequence[Node]) -> list[int]:
    """Return paths as numbers of nodes; nodes that are not among them come last."""
    numbers = {node.path: number for number, node in enumerate(nodes)}
    known = [numbers[path] for path in paths if path in numbers]
    return [*known, *[number for number in range(len(nodes)) if number not in known]]
