"""Partitioning an attribute's domain, by a layout that is revised as rows come."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from eddyline.arrays import IntArray
from eddyline.attributes.gain import split_information
from eddyline.attributes.kinds import is_discrete
from eddyline.attributes.layout import CutBy, Layout, layout_of

SAMPLE_ROWS_MAX = 2_048
REVISION_ROWS_MIN = 512  # in the sample, before another layout may replace the one in use
BITS_BETTER = 0.5  # a layout is replaced by one that tells so much more about a row
HASHED_SHARE_MAX = 0.05


class AttributePartition:
    """Finds for each row the partition of the attribute's domain that its value lies in.

    Text, booleans and integers of few different values are told apart by value: the most frequent
    ones have a partition of their own, the others are hashed. Fractions, dates, timestamps and
    integers of many different values are cut into ranges. NULL and NaN have a partition of their
    own, the last one. What suits the attribute is judged by a sample of the newest rows, again
    after every `look`.

    Parameters
    ----------
    partitions
        Number of ranges, and of hash buckets.
    values_max
        Number of values at most that have a partition of their own.
    cut_by
        Ranges of the same number of rows ("frequency") or of the same width ("width").

    Examples
    --------
    >>> by_range = AttributePartition(4)
    >>> by_range.assign(pa.array([0.0, 10.0, 4.0, None])).tolist()
    [0, 2, 1, 4]
    >>> by_hash = AttributePartition(24)
    >>> a, b, again = by_hash.assign(pa.array(["a", "b", "a"])).tolist()
    >>> a == again, a == b
    (True, False)

    """

    def __init__(
        self, partitions: int = 24, values_max: int = 0, cut_by: CutBy = "frequency"
    ) -> None:
        self.size = values_max + partitions + 1
        #: The partitions in use; None before the first rows.
        self.layout: Layout | None = None
        #: The newest values that were looked at, in arrival order.
        self.sample: pa.Array | None = None
        self._partitions = partitions
        self._values_max = values_max
        self._cut_by: CutBy = cut_by
        self._revision_rows_min = REVISION_ROWS_MIN

    def assign(self, values: pa.Array) -> IntArray:
        """Return the partition of each value."""
        if self.layout is None:
            if len(values) == 0:
                return np.zeros(0, dtype=np.int64)
            self.look(values)
        assert self.layout is not None
        return self.layout.assign(values)

    def restore(self, layout: Layout) -> None:
        """Start with a layout that rests on more rows than the first ones; it stays for longer."""
        self.layout = layout
        self._revision_rows_min = SAMPLE_ROWS_MAX

    def look(self, values: pa.Array) -> Layout | None:
        """Add values to the sample; return the old layout if another one suits it better."""
        sample = values if self.sample is None else pa.concat_arrays([self.sample, values])
        self.sample = sample.slice(max(0, len(sample) - SAMPLE_ROWS_MAX))
        old = self.layout
        if old is not None and self._suits(old):
            return None
        proposal = layout_of(self.sample, self._partitions, self._values_max, self._cut_by)
        if old is not None and self._cut_by == "width":
            proposal = proposal.widened(old)
        if old is not None and not self._is_better(proposal, old):
            return None
        self.layout = proposal
        return old

    def _suits(self, old: Layout) -> bool:
        """Whether no proposal could replace the layout in use, so that none need be made."""
        assert self.sample is not None
        if self._cut_by == "width" or is_discrete(self.sample) != old.is_discrete:
            return False
        if len(self.sample) < self._revision_rows_min:
            return True
        if old.is_discrete:
            return old.hashed_share(self.sample) <= HASHED_SHARE_MAX
        bits_max = math.log2(self._partitions + 1)  # as many ranges, and NULL
        return self._bits(old) + BITS_BETTER >= bits_max

    def _is_better(self, proposal: Layout, old: Layout) -> bool:
        assert self.sample is not None
        if proposal.is_discrete != old.is_discrete and not pa.types.is_integer(self.sample.type):
            return True  # the layout is that of a column of another type
        if len(self.sample) < self._revision_rows_min:
            return False
        if proposal.is_discrete != old.is_discrete:
            return True
        if proposal.is_discrete:
            hashed = old.hashed_share(self.sample)
            return hashed > max(HASHED_SHARE_MAX, 2.0 * proposal.hashed_share(self.sample))
        if self._cut_by == "width":
            return proposal.cuts != old.cuts  # the bounds have moved
        return self._bits(proposal) > self._bits(old) + BITS_BETTER

    def _bits(self, layout: Layout) -> float:
        counts = np.bincount(layout.assign(self.sample), minlength=layout.size)
        return float(split_information(counts))
