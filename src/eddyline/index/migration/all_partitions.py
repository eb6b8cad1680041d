"""All migration: a state has one configuration at all times."""

from __future__ import annotations

from eddyline.index.configuration import Configuration
from eddyline.index.migration.migration import Migration, PartitionUse, SearchCost


class MigrateAll(Migration):
    """Indexes all stored rows again whenever a configuration is selected.

    Examples
    --------
    >>> old, best = Configuration((8, 0)), Configuration((0, 8))
    >>> partitions = [PartitionUse(100, old, 0.0), PartitionUse(100, best, 9.0)]
    >>> MigrateAll().choose(partitions, best, search_ns=lambda configuration, rows: 1.0, move_ns=5)
    [0]

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 8.1.

    """

    name = "all"

    def pays(
        self, partition: PartitionUse, best: Configuration, search_ns: SearchCost, move_ns: float
    ) -> bool:
        """Every partition is indexed again."""
        return True
