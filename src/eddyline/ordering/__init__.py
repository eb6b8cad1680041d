"""Policies that order filters, one to a file, and how one is found by name."""

from eddyline.ordering.agreedy import AGreedy
from eddyline.ordering.as_written import AsWritten
from eddyline.ordering.independent import Independent
from eddyline.ordering.local_swaps import LocalSwaps
from eddyline.ordering.lottery import Lottery
from eddyline.ordering.policy import Change, Evidence, Policy
from eddyline.ordering.resolve import POLICIES, resolve_policy
from eddyline.ordering.sweep import Sweep
from eddyline.ordering.tickets import Tickets

__all__ = [
    "POLICIES",
    "AGreedy",
    "AsWritten",
    "Change",
    "Evidence",
    "Independent",
    "LocalSwaps",
    "Lottery",
    "Policy",
    "Sweep",
    "Tickets",
    "resolve_policy",
]
