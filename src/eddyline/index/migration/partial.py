"""Partial migration: partitions whose remaining searches repay the move."""

from __future__ import annotations

from eddyline.index.configuration import Configuration
from eddyline.index.migration.migration import Migration, PartitionUse, SearchCost


class MigratePartial(Migration):
    """Indexes a partition again if that costs less than the searches it saves.

    The benefit of equation 3 is Bm = Cs(IC) - (Cs(BIC) + Cm): the searches that the partition
    still expects, with the configuration it has and with the best one, and the move of its rows.

    Examples
    --------
    A search by the second column reads all rows of a partition that is indexed by the first:

    >>> old, best = Configuration((8, 0)), Configuration((0, 8))
    >>> def search_ns(configuration, rows):
    ...     return rows / 2 ** configuration.given((1,))
    >>> partitions = [PartitionUse(256, old, probes_expected=probes) for probes in (2.0, 100.0)]
    >>> MigratePartial().choose(partitions, best, search_ns, move_ns=10.0)
    [1]

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 8.2 and equation 3.

    """

    name = "partial"

    def pays(
        self, partition: PartitionUse, best: Configuration, search_ns: SearchCost, move_ns: float
    ) -> bool:
        """Whether the benefit is above 0."""
        now_ns = search_ns(partition.configuration, partition.rows)
        then_ns = search_ns(best, partition.rows)
        benefit_ns = partition.probes_expected * (now_ns - then_ns) - partition.rows * move_ns
        return benefit_ns > 0
