"""Re-ranking every n rows with momentum, as in an earlier extension of Spark (arXiv 1905.01349)."""

from __future__ import annotations

import numpy as np

from eddyline.ordering.policy import Change, Evidence, Policy


class Momentum(Policy):
    """Ranks the filters again after each round of rows, keeping a part of the old rank.

    One row in a thousand is evaluated by all filters. At the end of a round each filter's rank is
    its cost divided by its drop rate, mixed with its rank of the round before, and the statistics
    are reset.

    Parameters
    ----------
    collect_rate
        Rows for each row that is evaluated by all filters.
    calculate_rows
        Rows in a round.
    momentum
        Share of the old rank in the new one.

    Examples
    --------
    >>> policy = Momentum()
    >>> policy.start(filters=3)
    >>> policy.profile_probability
    0.001

    """

    name = "momentum"
    on_trial = False

    def __init__(
        self, collect_rate: int = 1_000, calculate_rows: int = 100_000, momentum: float = 0.3
    ) -> None:
        self.profile_probability = 1 / collect_rate
        self.calculate_rows = calculate_rows
        self.momentum = momentum

    def reset(self) -> None:
        """Start the first round."""
        self._rank = np.zeros(self.filters)
        self._has_rank = False
        self._begin_round()

    def _begin_round(self) -> None:
        self._tuples = 0
        self._drops = np.zeros(self.filters)

    def learn(self, evidence: Evidence) -> Change | None:
        """Count the batch; at the end of a round, rank and sort."""
        self._tuples += len(evidence.tuples)
        self._drops += evidence.tuples.sum(axis=0)
        if self._tuples < self.profile_probability * self.calculate_rows:
            return None
        rank = evidence.cost_us / np.maximum(self._drops / self._tuples, 1e-3)
        if self._has_rank:
            rank = self.momentum * self._rank + (1 - self.momentum) * rank
        self._rank, self._has_rank = rank, True
        self._begin_round()
        return self.change_to(np.argsort(rank, kind="stable").tolist())
