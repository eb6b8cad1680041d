"""Runs rows through operators along routes.

`Router` is the entry; a `Segment` drives the tactic that assigns rows to routes.
"""

from eddyline.fabric.options import OnError, RouterOptions
from eddyline.fabric.router import Router
from eddyline.fabric.totals import Totals

__all__ = ["OnError", "Router", "RouterOptions", "Totals"]
