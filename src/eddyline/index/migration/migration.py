"""Which stored rows are indexed again when a better configuration has been selected?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from eddyline.index.configuration import Configuration

#: Expected cost of one search with a configuration over so many rows, in nanoseconds.
SearchCost = Callable[[Configuration, int], float]


@dataclass(frozen=True)
class PartitionUse:
    """What a migration knows of a partition.

    Parameters
    ----------
    rows
        Number of rows.
    configuration
        The configuration that they are indexed with.
    probes_expected
        Number of searches expected until the partition expires.

    """

    rows: int
    configuration: Configuration
    probes_expected: float

    def __post_init__(self) -> None:
        """Check that neither number is negative."""
        if self.rows < 0:
            raise ValueError(f"rows must be at least 0, not {self.rows}")
        if not self.probes_expected >= 0:
            raise ValueError(f"probes_expected must be at least 0, not {self.probes_expected}")


class Migration(ABC):
    """Chooses the partitions of a state to index again with the configuration that is best now.

    Only `pays` must be written. Partitions that have the best configuration already are left as
    they are, whatever the method.

    References
    ----------
    Works et al., Adaptive Multi-Route Index, 2013, section 8.

    """

    name: ClassVar[str]

    def choose(
        self,
        partitions: Sequence[PartitionUse],
        best: Configuration,
        search_ns: SearchCost,
        move_ns: float,
    ) -> list[int]:
        """Return the positions of the partitions to index again, ascending.

        Parameters
        ----------
        partitions
            All partitions of the state.
        best
            The configuration that was selected.
        search_ns
            Expected cost of one search with a configuration over so many rows.
        move_ns
            Cost to index one row again.

        """
        return [
            position
            for position, partition in enumerate(partitions)
            if partition.configuration != best and self.pays(partition, best, search_ns, move_ns)
        ]

    @abstractmethod
    def pays(
        self, partition: PartitionUse, best: Configuration, search_ns: SearchCost, move_ns: float
    ) -> bool:
        """Whether to index a partition again, whose configuration is not the best one."""
