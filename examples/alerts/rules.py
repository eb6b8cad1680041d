"""Python functions that the queries of alerts.toml use."""

import datetime


def is_evening(at: datetime.datetime | None) -> bool | None:
    """Whether the time is after six in the evening; None without a time."""
    return None if at is None else at.hour >= 18
