"""Schedules of index tuning, one to a file."""

from eddyline.index.schedules.continuous import Continuous
from eddyline.index.schedules.hybrid import Hybrid
from eddyline.index.schedules.periodic import Periodic
from eddyline.index.schedules.schedule import Schedule
from eddyline.index.schedules.triggered import Triggered

#: Every schedule by its name. The conformance suite covers all of them.
SCHEDULES: dict[str, type[Schedule]] = {
    schedule.name: schedule for schedule in (Continuous, Periodic, Triggered, Hybrid)
}

__all__ = ["SCHEDULES", "Continuous", "Hybrid", "Periodic", "Schedule", "Triggered"]
