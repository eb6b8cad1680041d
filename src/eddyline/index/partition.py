"""A partition: immutable rows of a state, the configuration they have, and the indexes over them.

Every partition has one bit-address index, which serves all access patterns. Where a pattern is
searched so often that an exact index of its own costs less, or so rarely that none pays, the
partition says so, from measured unit costs and from the number of searches to come. A wrong
forecast costs at most about what the right choice would have cost: what a search paid beyond the
best rival is added up, and the rival is built when the sum reaches the price of building it.

References
----------
Works et al., Adaptive Multi-Route Index, 2013, sections 4.2 and 8.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from eddyline.index.bit_address import BitAddress, KeyMap
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.cost import DEFAULT_COSTS, UnitCosts
from eddyline.index.index import Index, Pattern
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.rivals.batch_join import BatchJoin


class Choice(NamedTuple):
    """An index that was chosen for searches by an access pattern."""

    pattern: Pattern
    index: str


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

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.arange(1000, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    >>> partition = Partition(Columns([codes, codes[::-1]], [None, None]), Configuration((9, 0)))
    >>> partition.choose((0,), probes=10).name
    'bit address'
    >>> partition.choose((1,), probes=10_000).name
    'sorted hash'

    """

    def __init__(
        self,
        columns: Columns,
        configuration: Configuration,
        costs: UnitCosts = DEFAULT_COSTS,
    ) -> None:
        self.columns = columns
        self._configuration = configuration
        self._costs = costs
        self._bit_address: BitAddress | None = None
        self._hashes = LazyHash(columns)
        self._join = BatchJoin(columns)
        #: What searches by a pattern paid beyond a search of its own index.
        self._excess_ns: Counter[Pattern] = Counter()
        #: Number of probes that each choice served.
        self.choices: Counter[Choice] = Counter()

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

    @property
    def bit_address(self) -> BitAddress:
        """The bit-address index, built when first asked for."""
        if self._bit_address is None:
            key_map = KeyMap.of(self._configuration, self.columns)
            self._bit_address = BitAddress(self.columns, key_map)
        return self._bit_address

    def reconfigure(self, configuration: Configuration) -> None:
        """Index the rows again with another configuration, when they are next searched."""
        if configuration != self._configuration:
            self._configuration = configuration
            self._bit_address = None
            self._excess_ns.clear()

    def choose(self, pattern: Pattern, probes: int, forecast: float = 0.0) -> Index:
        """Return the index for a batch of searches by an access pattern.

        Parameters
        ----------
        pattern
            The searched columns.
        probes
            Number of searches in the batch.
        forecast
            Number of searches by this pattern that are expected until the partition expires.

        """
        index = self._cheapest(pattern, probes, max(float(probes), forecast))
        self.choices[Choice(pattern, index.name)] += probes
        return index

    def _cheapest(self, pattern: Pattern, probes: int, expected: float) -> Index:
        if self._hashes.is_built(pattern):
            return self._hashes
        costs, rows = self._costs, len(self)
        exact_ns = len(pattern) * costs.hash_ns + costs.visit_ns + costs.compare_ns
        walked_ns = self._walked_ns(pattern)
        build_ns = 0.0 if self._bit_address is not None else rows * costs.insert_ns
        sort_ns = rows * costs.sort_ns * (1 + 0.25 * (len(pattern) - 1))
        join_ns = rows * costs.scan_ns + probes * exact_ns
        excess_ns = self._excess_ns[pattern] + probes * max(walked_ns - exact_ns, 0.0)
        best_ns = min(build_ns + expected * walked_ns, join_ns * expected / max(probes, 1))
        if excess_ns > sort_ns or sort_ns + expected * exact_ns < best_ns:
            return self._hashes
        if join_ns < build_ns + probes * walked_ns:
            self._excess_ns[pattern] += max(join_ns - probes * exact_ns, 0.0)
            return self._join
        self._excess_ns[pattern] = excess_ns
        return self.bit_address

    def _walked_ns(self, pattern: Pattern) -> float:
        """Return what a search by a pattern costs in the bit-address index."""
        costs, configuration, rows = self._costs, self._configuration, len(self)
        hash_ns = len(pattern) * costs.hash_ns
        compared = max(rows / (1 << min(configuration.given(pattern), rows.bit_length())), 1.0)
        ranges = configuration.ranges(pattern)
        walked_ns = ranges * costs.visit_ns + compared * costs.compare_ns
        return hash_ns + min(walked_ns, costs.visit_ns + rows * costs.compare_ns)
