"""What the queries of alerts.toml ask that SQL does not know."""

import datetime


def is_evening(at: datetime.datetime | None) -> bool | None:
    """Say whether it is after six."""
    return None if at is None else at.hour >= 18
