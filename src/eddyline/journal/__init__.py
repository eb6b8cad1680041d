"""Every decision as a typed event, and the journal that keeps the newest of them."""

from eddyline.journal.events import Event
from eddyline.journal.journal import Journal, Record

__all__ = ["Event", "Journal", "Record"]
