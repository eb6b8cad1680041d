"""Streams whose joins behave as asked: which stored window has a partner for which row.

Stored keys are even numbers, and a key without a partner is odd. So the key of a row says nothing
about whether it has one, and a probe costs the same either way, but for the stored row it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, IntArray
from eddyline.joins.combinations import Combinations
from eddyline.joins.join import Join
from eddyline.joins.keys import key_column
from eddyline.joins.plan import JoinQuery, KeyRef, Role
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.mesh import MeshOptions
from eddyline.ordering import AsWritten, Policy

WINDOW_US = 10**12
#: Rows of a stored window, as in the A-Greedy paper (its table 1).
WINDOW_ROWS = 10_000


def run_of(*keys: IntArray, words: int = 1, payload: Mapping[str, pa.Array] | None = None) -> Run:
    """Return rows with these keys that every query wants, all of the same time."""
    count = len(keys[0])
    everyone = np.full((count, words), np.iinfo(np.uint64).max, dtype=np.uint64)
    stored = pa.record_batch(dict(payload) if payload else {"row": np.arange(count)})
    columns = [key_column(pa.array(key)) for key in keys]
    return Run(columns, np.zeros(count, dtype=np.int64), {0: everyone}, stored)


def discard(results: Combinations) -> None:
    """Take results and do nothing."""


def star(windows: int) -> JoinQuery:
    """Return a join of the last of some streams with all others, each by a key of its own."""
    root, others = Role(windows), [Role(number) for number in range(windows)]
    equal = tuple(
        frozenset([KeyRef(root, number), KeyRef(role, 0)]) for number, role in enumerate(others)
    )
    return JoinQuery(0, (*others, root), equal, dict.fromkeys([*others, root], WINDOW_US))


class Fixed(AsWritten):
    """One order for as many SteMs as it has; as written for others."""

    def __init__(self, order: Sequence[int]) -> None:
        self._given = tuple(order)

    def start(
        self, filters: int, order: Sequence[int] | None = None, seed: int | None = None
    ) -> None:
        """Begin with the one order."""
        super().start(filters, self._given if filters == len(self._given) else order, seed)


@dataclass
class StarJoin:
    """A star join over stored windows, and the new rows that probe them.

    Parameters
    ----------
    windows
        Number of stored windows.
    policy
        Orders the probes. Default: the join's own.
    classes
        Parameters of the search for classes of rows; None for one order.
    seed
        Of policy and search.

    """

    windows: int
    policy: Policy | None = None
    classes: MeshOptions | None = None
    seed: int = 0
    join: Join = field(init=False)

    def __post_init__(self) -> None:
        """Store the windows."""
        keys = 2 * np.arange(WINDOW_ROWS)
        stems = {number: SteM([run_of(keys)]) for number in range(self.windows)}
        self.join = Join([star(self.windows)], stems, self.policy, self.seed, self.classes)

    @property
    def order(self) -> tuple[int, ...]:
        """The order in which new rows of no class probe."""
        paths = self.join.orders()[Role(self.windows)]
        return tuple(path[-1].role.stream for path in paths)

    @property
    def probes(self) -> int:
        """Probes of the windows so far."""
        return sum(stem.counts.probes for stem in self.join.stems.values())

    @property
    def comparisons(self) -> int:
        """Probes, and stored rows compared."""
        return self.probes + sum(stem.counts.candidates for stem in self.join.stems.values())

    def run(self, rows: Run, emit: Callable[[Combinations], None] = discard) -> None:
        """Join new rows; they are not kept, so that memory stays as it is."""
        stem = self.join.stems[self.windows]
        self.join.run({self.windows: rows}, emit)
        stem.old.clear()


def answering_rows(
    rng: np.random.Generator, answers: BoolArray, payload: Mapping[str, pa.Array] | None = None
) -> Run:
    """Return rows that have a partner in a window exactly where an answer is True."""
    keys = [2 * rng.integers(0, WINDOW_ROWS, len(answers)) + ~column for column in answers.T]
    return run_of(*keys, payload=payload)
