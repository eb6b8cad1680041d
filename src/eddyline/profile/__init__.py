"""What was measured: profile tuples, costs, drift; and the budget of time for measuring."""

from eddyline.profile.budget import Budget
from eddyline.profile.cost import CostModel, Costs
from eddyline.profile.drift.rates import RateDrift
from eddyline.profile.window import ProfileWindow

__all__ = ["Budget", "CostModel", "Costs", "ProfileWindow", "RateDrift"]
