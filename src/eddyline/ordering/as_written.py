"""The written order: what a plan without adaptation does, and the control in every comparison."""

from __future__ import annotations

from eddyline.ordering.policy import Change, Evidence, Policy


class AsWritten(Policy):
    """Keeps the filters in the order they were written.

    Examples
    --------
    >>> policy = AsWritten()
    >>> policy.start(filters=3)
    >>> policy.order
    (0, 1, 2)

    """

    name = "as_written"
    learns = False

    def learn(self, evidence: Evidence) -> Change | None:
        """Never change anything."""
        return None
