"""What was seen: the window of profile tuples, costs per row, drift, and the budget for looking."""

from eddyline.profile.budget import Budget
from eddyline.profile.cost import CostModel, Costs
from eddyline.profile.drift.rates import RateDrift
from eddyline.profile.window import ProfileWindow

__all__ = ["Budget", "CostModel", "Costs", "ProfileWindow", "RateDrift"]
