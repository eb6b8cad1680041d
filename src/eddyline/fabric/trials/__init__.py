"""Trials: a change is compared with what it replaced, and kept or reverted."""

from eddyline.fabric.trials.before_after import BeforeAfterTrial, OrderCooldown
from eddyline.fabric.trials.pair import PairTrial
from eddyline.fabric.trials.split import SplitTrial
from eddyline.fabric.trials.trial import AFTER, BEFORE, Trial

__all__ = [
    "AFTER",
    "BEFORE",
    "BeforeAfterTrial",
    "OrderCooldown",
    "PairTrial",
    "SplitTrial",
    "Trial",
]
