"""Drift detectors, one to a file: feed one with `update`, then read `detected`."""

from eddyline.profile.drift.cusum import CusumDetector
from eddyline.profile.drift.rates import DropRateDetector, RateReference

__all__ = ["CusumDetector", "DropRateDetector", "RateReference"]
