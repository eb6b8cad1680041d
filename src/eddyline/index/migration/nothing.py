"""Nothing migration: a configuration serves the rows that arrive while it is the best one."""

from __future__ import annotations

from eddyline.index.configuration import Configuration
from eddyline.index.migration.migration import Migration, PartitionUse, SearchCost


class MigrateNothing(Migration):
    """Leaves all stored rows as they are; partitions have different configurations.

    The best method in the paper's experiments (section 9.2).

    Examples
    --------
    >>> old, best = Configuration((8, 0)), Configuration((0, 8))
    >>> use = PartitionUse(100, old, 1e9)
    >>> MigrateNothing().choose([use], best, search_ns=lambda configuration, rows: 1.0, move_ns=0)
    []

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 8.1.

    """

    name = "nothing"

    def pays(
        self, partition: PartitionUse, best: Configuration, search_ns: SearchCost, move_ns: float
    ) -> bool:
        """No partition is indexed again."""
        return False
