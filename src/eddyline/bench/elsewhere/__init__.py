"""Heuristics that users meet in other systems, as policies, for comparison in `bench agreedy`."""

from eddyline.bench.elsewhere.adjacent_trials import AdjacentTrials
from eddyline.bench.elsewhere.cost_per_drop import CostPerDrop
from eddyline.bench.elsewhere.momentum import Momentum
from eddyline.ordering import Policy

ELSEWHERE: dict[str, type[Policy]] = {
    policy.name: policy for policy in (AdjacentTrials, CostPerDrop, Momentum)
}

__all__ = ["ELSEWHERE", "AdjacentTrials", "CostPerDrop", "Momentum"]
