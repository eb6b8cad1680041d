"""What was measured: profile tuples, costs per row, drift, and the budget for profiling."""

from eddyline.profile.budget import Budget
from eddyline.profile.cost import CostModel, Costs
from eddyline.profile.drift import CusumDetector, DropRateDetector, RateReference
from eddyline.profile.window import ProfileWindow

__all__ = [
    "Budget",
    "CostModel",
    "Costs",
    "CusumDetector",
    "DropRateDetector",
    "ProfileWindow",
    "RateReference",
]
