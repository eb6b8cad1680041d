"""A cascade of doubly-pipelined joins against SteMs: what is stored, and what a new order costs.

Readings of light, temperature and noise are joined by place. The cascade joins two of the streams,
keeps the pairs in an index of their own, and joins them with the third.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.3,
figure 7.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eddyline.arrays import IntArray
from eddyline.bench.harness import Bench
from eddyline.bench.joins_workload import WINDOW_US, run_of
from eddyline.joins.combinations import Combinations
from eddyline.joins.join import Join
from eddyline.joins.keys import key_column
from eddyline.joins.plan import JoinQuery, KeyRef, Role
from eddyline.joins.stem import SteM

STREAMS = 3
#: Readings of each stream for each place, after the last micro-batch.
READINGS = 5


class Pipelined:
    """A doubly-pipelined join of two inputs by one key; both are kept in an index."""

    def __init__(self) -> None:
        self._sides = (SteM([]), SteM([]))

    @property
    def stored(self) -> int:
        """Rows in both indexes."""
        return sum(map(len, self._sides))

    def join(self, new: Sequence[IntArray]) -> IntArray:
        """Return the keys of new results, for the keys of new rows on both sides."""
        for stem, keys in zip(self._sides, new, strict=True):
            if len(keys):
                stem.new = run_of(keys)
        found = [np.zeros(0, dtype=np.int64)]
        for number, keys in enumerate(new):
            # New rows of one side meet all rows of the other; those of the other only old ones.
            columns = [key_column(pa.array(keys))]
            for probes, _ in self._sides[1 - number].probe((0,), columns, with_new=number == 0):
                found.append(keys[probes])
        for stem in self._sides:
            stem.keep_new()
        return np.concatenate(found)


class Cascade:
    """Two doubly-pipelined joins: the first two streams, and their pairs with the third.

    Parameters
    ----------
    order
        The streams, in the order in which they are joined.

    """

    def __init__(self, order: Sequence[int]) -> None:
        self._order = order
        self._lower, self._upper = Pipelined(), Pipelined()
        self.results = 0

    @property
    def stored(self) -> int:
        """Rows in all indexes, pairs included."""
        return self._lower.stored + self._upper.stored

    def run(self, new: Sequence[IntArray]) -> None:
        """Join the new rows of all streams."""
        one, other, third = (new[number] for number in self._order)
        pairs = self._lower.join([one, other])
        self.results += len(self._upper.join([pairs, third]))


def cascade(bench: Bench) -> None:
    """Count rows in indexes, and rows that must be indexed again when the order changes."""
    rng = np.random.default_rng(bench.seed)
    places = 200 if bench.quick else 2_000
    batches = [[rng.permutation(places) for _ in range(STREAMS)] for _ in range(READINGS)]
    roles = tuple(Role(number) for number in range(STREAMS))
    equal = (frozenset(KeyRef(role, 0) for role in roles),)
    join = Join([JoinQuery(0, roles, equal, dict.fromkeys(roles, WINDOW_US))], seed=bench.seed)
    results = 0

    def count(found: Combinations) -> None:
        nonlocal results
        results += len(found)

    rival, turned = Cascade((0, 1, 2)), Cascade((1, 2, 0))
    with bench.progress("fig 7: cascade", READINGS) as advance:
        for new in batches:
            join.run({number: run_of(keys) for number, keys in enumerate(new)}, count)
            for other in (rival, turned):
                other.run(new)
            advance()
    assert results == rival.results == turned.results
    stored = sum(map(len, join.stems.values()))
    bench.add(
        f"fig 7: 3 streams, {READINGS} rows a key: rows in indexes, cascade / SteMs",
        rival.stored / stored,
        "x",
        f"{stored:,} rows in SteMs",
        "n - 2 more indexes",
    )
    bench.add(
        "fig 7: another join order: rows that must be indexed again, cascade",
        turned.stored - stored,
        "rows",
        "none in SteMs",
        "intermediate indexes are recomputed",
    )
