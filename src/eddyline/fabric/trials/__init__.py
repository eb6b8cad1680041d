"""Trials: a change is compared with what it replaced, and kept or reverted."""

from eddyline.fabric.trials.alternating import AlternatingTrial
from eddyline.fabric.trials.before_after import BeforeAfterTrial, OrderCooldown
from eddyline.fabric.trials.split import SplitTrial
from eddyline.fabric.trials.trial import AFTER, BEFORE, Trial

__all__ = [
    "AFTER",
    "BEFORE",
    "AlternatingTrial",
    "BeforeAfterTrial",
    "OrderCooldown",
    "SplitTrial",
    "Trial",
]
