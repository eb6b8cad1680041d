"""Adjacent-swap trials: try, measure, keep or undo, as DuckDB's AdaptiveFilter does."""

from __future__ import annotations

from eddyline.ordering.policy import Change, Evidence, Policy


class AdjacentTrials(Policy):
    """Tries random swaps of neighbours and keeps those after which a row costs less.

    No profile is needed: the time of whole batches decides. A pair whose swap did not help is
    tried ever more rarely. Since only one swap is tried at a time, a filter that belongs n places
    further forward needs n successful trials.

    Parameters
    ----------
    observe_batches
        Batches measured before a trial.
    trial_batches
        Batches measured with the swap.

    Examples
    --------
    >>> import numpy as np
    >>> policy = AdjacentTrials()
    >>> policy.start(filters=2, seed=0)
    >>> policy.order
    (0, 1)

    """

    name = "adjacent_trials"
    on_trial = False

    def __init__(self, observe_batches: int = 10, trial_batches: int = 20) -> None:
        self.observe_batches = observe_batches
        self.trial_batches = trial_batches

    def reset(self) -> None:
        """Start by observing; every pair is as likely to be tried."""
        self._likelihood = [1.0] * max(0, self.filters - 1)
        self._on_trial: int | None = None
        self._before_us = 0.0
        self._begin()

    def _begin(self) -> None:
        self._batches = 0
        self._rows = 0
        self._us = 0.0

    def learn(self, evidence: Evidence) -> Change | None:
        """Count the batch; at the end of an observation or a trial, decide."""
        if self.filters < 2:
            return None
        self._batches += 1
        self._rows += evidence.rows
        self._us += float(evidence.seen @ evidence.cost_us)
        mean_us = self._us / max(self._rows, 1)
        if self._on_trial is None:
            return self._begin_trial(mean_us) if self._batches >= self.observe_batches else None
        return self._end_trial(mean_us) if self._batches >= self.trial_batches else None

    def _begin_trial(self, mean_us: float) -> Change | None:
        self._begin()
        self._before_us = mean_us
        pair = int(self.rng.integers(self.filters - 1))
        if self.rng.random() >= self._likelihood[pair]:
            return None
        self._on_trial = pair
        return self._swap(pair)

    def _end_trial(self, mean_us: float) -> Change | None:
        pair = self._on_trial
        assert pair is not None
        self._on_trial = None
        self._begin()
        if mean_us < self._before_us:
            self._likelihood[pair] = 1.0
            return None
        self._likelihood[pair] = max(0.01, self._likelihood[pair] / 2)
        return self._swap(pair)

    def _swap(self, pair: int) -> Change | None:
        order = list(self.order)
        order[pair], order[pair + 1] = order[pair + 1], order[pair]
        return self.change_to(order, pair=pair)
