"""How indexes are tuned: the methods that a tuner is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from eddyline.index.assessment import CDIA, Assessment
from eddyline.index.bit_address import BITS_MAX, BitAddress
from eddyline.index.cost import Cost, dependent_cost, paper_cost
from eddyline.index.migration import MigrateNothing, MigratePartial, Migration
from eddyline.index.schedules import Continuous, Hybrid, Schedule

#: Default bounds of the assessment. A pattern that it merges away is a search of all rows: with
#: the paper's threshold of 0.1, a tenth of the searches would cost more than all others.
ERROR, THRESHOLD = 0.0005, 0.001
#: Default searches of a state from one selection to the next. A state that serves batches counts a
#: whole batch at once, so counting all the time costs nothing, and a batch with new patterns should
#: not wait for its turn.
WINDOW_REQUESTS = 2_000


def default_assessment() -> Assessment:
    """Return the assessment of a state."""
    return CDIA(ERROR, THRESHOLD)


def default_schedule() -> Schedule:
    """Return the schedule of all states."""
    return Continuous(WINDOW_REQUESTS)


@dataclass(frozen=True)
class TuningOptions:
    """Parameters of the tuning; the defaults are what won in `eddyline bench amri`.

    Parameters
    ----------
    assessment, schedule
        Make the assessment of a state, and the schedule of all states.
    migration
        Chooses the partitions that are indexed again.
    cost
        What selection minimises.
    bits
        Bits of bucket ids; None for as many as the rows of a partition fill.
    only
        Name of the only index that partitions use; None for the cheapest.
    at_once
        Whether a batch of searches that would cost more than indexing all rows again is reason to
        select a configuration before it is served, whatever the schedule says. Has an effect only
        if `only` names the bit-address index: where rivals are allowed, a sorted hash serves it.

    Examples
    --------
    >>> options = TuningOptions.paper(bits=11)
    >>> options.schedule().name, options.migration.name, options.only
    ('hybrid', 'nothing', 'bit address')
    >>> TuningOptions().schedule().name, TuningOptions().migration.name, TuningOptions().only
    ('continuous', 'partial', None)

    """

    assessment: Callable[[], Assessment] = default_assessment
    schedule: Callable[[], Schedule] = default_schedule
    migration: Migration = field(default_factory=MigratePartial)
    cost: Cost = dependent_cost
    bits: int | None = None
    only: str | None = None
    at_once: bool = True

    @classmethod
    def paper(
        cls,
        error: float = 0.05,
        threshold: float = 0.1,
        period_requests: int = 60_000,
        trigger_requests: int = 100_000,
        bits: int = BITS_MAX,
    ) -> TuningOptions:
        """Return the settings of the paper.

        Parameters
        ----------
        error, threshold
            δ and θ: 0.05 and 0.1 in fig 8, 0.1 and 0.15 in figs 9 and 10.
        period_requests, trigger_requests
            60,000 and 100,000 in fig 8, 40,000 and 80,000 in figs 9 and 10.
        bits
            64 in the paper; here at most `BITS_MAX`.

        """
        return cls(
            lambda: CDIA(error, threshold, "highest_count"),
            lambda: Hybrid.paper(period_requests, trigger_requests),
            MigrateNothing(),
            paper_cost,
            bits,
            BitAddress.name,
            at_once=False,
        )
