"""Runs rows through operators along routes."""

from eddyline.fabric.router import OnError, Router, RouterOptions
from eddyline.fabric.totals import Totals

__all__ = ["OnError", "Router", "RouterOptions", "Totals"]
