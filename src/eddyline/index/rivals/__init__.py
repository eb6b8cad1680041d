"""Indexes to compare with: hash indices, a join of each batch, and a scan."""

from eddyline.index.rivals.adaptive_hash import AdaptiveHash, most_frequent
from eddyline.index.rivals.batch_join import BatchJoin
from eddyline.index.rivals.hash_indices import HashIndices
from eddyline.index.rivals.scan import Scan

__all__ = ["AdaptiveHash", "BatchJoin", "HashIndices", "Scan", "most_frequent"]
