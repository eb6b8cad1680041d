"""A partition: immutable rows of a state, the configuration they have, and the indexes over them.

The bit-address index serves all access patterns. Where a pattern is searched so often that a sorted
hash of its own costs less, or so rarely that no index pays, a partition says so, from measured unit
costs and the number of searches to come. A wrong forecast costs little: what searches paid beyond
those of a sorted hash is added up, and it is built when the sum reaches the price of building it.

References
----------
Works et al., Adaptive Multi-Route Index, 2013, sections 4.2 and 8.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

from eddyline.index.bit_address import BitAddress
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.cost import DEFAULT_COSTS, UnitCosts
from eddyline.index.index import Index, Pattern
from eddyline.index.key_map import KeyMap
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.rivals.batch_join import BatchJoin

#: Memory of sorted hashes, in bytes a row; a further one takes the place of the least used.
HASH_BYTES_MAX = 64
#: Each further column adds so much to the cost of a sorted hash, and of searching it.
_FURTHER_COLUMN = 0.3
NO_DEMAND: Mapping[Pattern, float] = {}


class Partition:
    """Rows with one configuration, and the indexes that were built over them.

    Parameters
    ----------
    columns
        The join columns.
    configuration
        Of the bit-address index.
    costs
        Measured unit costs.
    only
        Name of the only index that is used; None for the cheapest.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.arange(1000, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    >>> partition = Partition(Columns([codes, codes[::-1]], [None, None]), Configuration((9, 0)))
    >>> demand = {(0,): 50, (1,): 10_000, (0, 1): 50}
    >>> partition.choose((0,), probes=1).name
    'batch join'
    >>> partition.choose((0,), probes=1, demand=demand).name
    'bit address'
    >>> partition.choose((1,), probes=1, demand=demand).name
    'sorted hash'

    """

    def __init__(
        self,
        columns: Columns,
        configuration: Configuration,
        costs: UnitCosts = DEFAULT_COSTS,
        only: str | None = None,
    ) -> None:
        self.columns = columns
        self._configuration = configuration
        self._costs = costs
        self._only = only
        self._bit_address: BitAddress | None = None
        self._hashes = LazyHash(columns)
        self._join = BatchJoin(columns)
        #: What searches by a pattern paid beyond searches of a sorted hash.
        self._excess_ns: dict[Pattern, float] = {}
        #: Number of searches by pattern and index.
        self.searches: Counter[tuple[Pattern, str]] = Counter()
        #: Seconds that building indexes took.
        self.build_s = 0.0

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def configuration(self) -> Configuration:
        """Of the bit-address index."""
        return self._configuration

    @property
    def bytes(self) -> int:
        """Memory that the indexes built so far take."""
        own = 0 if self._bit_address is None else self._bit_address.bytes
        return own + self._hashes.bytes

    def reconfigure(self, configuration: Configuration) -> None:
        """Index the rows again with another configuration, when they are next searched."""
        if configuration != self._configuration:
            self._configuration = configuration
            self._bit_address = None

    def choose(
        self, pattern: Pattern, probes: int, demand: Mapping[Pattern, float] = NO_DEMAND
    ) -> Index:
        """Return the index that costs least for a batch of searches, and for those to come.

        Parameters
        ----------
        pattern
            The searched columns.
        probes
            Number of searches in the batch.
        demand
            Number of searches by each pattern that are expected until the partition expires.

        """
        index = self._cheapest(pattern, probes, demand)
        self.searches[pattern, index.name] += probes
        return index

    def _cheapest(self, pattern: Pattern, probes: int, demand: Mapping[Pattern, float]) -> Index:
        if self._only == BitAddress.name:
            return self.bit_address
        if self._hashes.is_built(pattern):
            return self._hashes
        if self._only == LazyHash.name:
            return self._build_hash(pattern)
        costs, rows, expected = self._costs, len(self), max(demand.get(pattern, 0.0), probes)
        further = 1 + _FURTHER_COLUMN * (len(pattern) - 1)
        sort_ns, exact_ns = rows * costs.sort_ns * further, costs.exact_ns * further
        walked_ns = self.walked_ns(pattern)
        build_ns = 0.0
        if self._bit_address is None:  # all patterns share it
            build_ns = rows * costs.insert_ns / max(len(demand), 1)
        join_ns = rows * costs.scan_ns * further + probes * (exact_ns + costs.search_ns)
        joined_ns = join_ns * expected / max(probes, 1)
        is_joined = joined_ns < build_ns + expected * walked_ns
        now_ns = join_ns if is_joined else probes * walked_ns
        excess_ns = self._excess_ns.get(pattern, 0.0) + max(now_ns - probes * exact_ns, 0.0)
        later_ns = min(build_ns + expected * walked_ns, joined_ns)
        if excess_ns > sort_ns or sort_ns + expected * exact_ns < later_ns:
            return self._build_hash(pattern)
        self._excess_ns[pattern] = excess_ns
        return self._join if is_joined else self.bit_address

    def walked_ns(self, pattern: Pattern, searches: int = 1) -> float:
        """Return what searches by a pattern cost in the bit-address index."""
        costs, configuration, rows = self._costs, self._configuration, len(self)
        known = min(configuration.given(pattern), rows.bit_length())
        more_rows, more_ranges = rows / (1 << known) - 1, configuration.ranges(pattern) - 1
        walked_ns = max(more_rows, 0) * costs.compare_ns + more_ranges * costs.visit_ns
        return searches * (costs.search_ns + min(walked_ns, rows * costs.compare_ns))

    @property
    def bit_address(self) -> BitAddress:
        """The bit-address index, built when first asked for."""
        if self._bit_address is None:
            began = time.perf_counter()
            key_map = KeyMap.of(self._configuration, self.columns)
            self._bit_address = BitAddress(self.columns, key_map)
            self.build_s += time.perf_counter() - began
        return self._bit_address

    def _build_hash(self, pattern: Pattern) -> LazyHash:
        """Build the sorted hash of a pattern, and drop others if they take too much memory."""
        began = time.perf_counter()
        self._hashes.build(pattern)
        self._excess_ns.pop(pattern, None)
        others = [other for other in self._hashes.patterns if other != pattern]
        others.sort(key=lambda other: self.searches[other, LazyHash.name])
        for other in others:
            if self._hashes.bytes <= HASH_BYTES_MAX * len(self):
                break
            self._hashes.drop(other)
        self.build_s += time.perf_counter() - began
        return self._hashes
