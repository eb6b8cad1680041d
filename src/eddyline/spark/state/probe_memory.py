"""What a worker process remembers of probe orders, classes of rows and searches, task to task.

A worker that has seen a join before goes on with what it learnt itself; a new one begins with the
orders and the demands of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eddyline.index.tuner import Tuner
from eddyline.joins.join import JoinWords
from eddyline.joins.join_tree import Path
from eddyline.joins.plan import KeyRef, Role
from eddyline.joins.probe_routes import ProbeRoutes
from eddyline.spark.common.worker_cache import WorkerCache
from eddyline.spark.state.join_plan import JoinPlan

JOINS_MAX = 64
#: By folder of the state and names of the SteMs, which numbers of streams stand for.
_routes: WorkerCache[tuple[str, ...], dict[Role, ProbeRoutes]] = WorkerCache(JOINS_MAX)
#: As before, and by the names of key columns, whose positions patterns are.
_tuners: WorkerCache[tuple[str, ...], Tuner] = WorkerCache(JOINS_MAX)


class PlanWords(JoinWords):
    """Names roles and paths so that they mean the same in other plans.

    Parameters
    ----------
    plan
        The plan.

    """

    def __init__(self, plan: JoinPlan) -> None:
        self._plan = plan

    def role(self, role: Role) -> str:
        """Return the name of the SteM, and a number if the role is not its first."""
        return self._plan.role_name(role)

    def path(self, path: Path) -> str:
        """Return the SteMs on a path, with the keys that they are searched by."""
        return " > ".join(
            f"{self.role(step.role)} by "
            + ", ".join(
                f"{self._key(KeyRef(step.role, own.column))} = {self._key(own.source)}"
                for own in step.bindings
            )
            for step in path
        )

    def state(self, stream: int) -> str:
        """Return the name of the SteM."""
        return self._plan.stems[stream].name

    def columns(self, stream: int) -> Sequence[str]:
        """Return the names of its key columns."""
        return self._plan.stems[stream].keys

    def _key(self, key: KeyRef) -> str:
        return self._plan.stems[key.role.stream].keys[key.column]


def recall_routes(plan: JoinPlan) -> dict[Role, ProbeRoutes] | None:
    """Return what this process has learnt of a plan's joins; None if nothing."""
    return _routes.get(_identity(plan))


def keep_routes(plan: JoinPlan, routes: Mapping[Role, ProbeRoutes]) -> None:
    """Keep what was learnt."""
    _routes.put(_identity(plan), dict(routes))


def recall_tuner(plan: JoinPlan) -> Tuner:
    """Return the tuner of a plan's SteMs that this process has, or a new one."""
    identity = (*_identity(plan), *[name for stem in plan.stems for name in stem.keys])
    tuner = _tuners.get(identity)
    if tuner is None:
        tuner = Tuner(plan.tuning, plan.costs)
        for stem in plan.stems:
            if stem.name in plan.demands:
                tuner.begin_with(stem.name, plan.demands[stem.name].positions(stem.keys))
        _tuners.put(identity, tuner)
    return tuner


def _identity(plan: JoinPlan) -> tuple[str, ...]:
    return (str(plan.state), *[stem.name for stem in plan.stems])
