"""Parameters of the search for a mesh."""

from __future__ import annotations

from dataclasses import dataclass, field

from eddyline.errors import EddylineError
from eddyline.mesh.cost import Overheads
from eddyline.mesh.optimal import TUPLES_MAX as OPTIMAL_TUPLES_MAX
from eddyline.mesh.routes import ROUTE_FINDERS
from eddyline.mesh.starts import STARTS

SEARCHES = ("ii", "sa", "opt")


@dataclass(frozen=True)
class MeshOptions:
    """Parameters of the search for a mesh.

    Parameters
    ----------
    search
        `ii` (iterative improvement), `sa` (simulated annealing) or `opt` (every partition).
    start
        `content`, `route`, `random`, `extreme-1` or `extreme-n`.
    routes
        How routes are found: `rank`, `dynamic` or `greedy`.
    tuples_max
        Training tuples after condensing.
    iterations_max, seconds_max
        Stop conditions.
    planning_s_max
        Limit for everything that is done before the first row: reading sampled rows, timing
        conditions, searching. What is not found by then is not used. None: no limit.
    depth_max
        Of the classifier.
    gain_min
        Smallest saving, as a share of the best single order's cost, that is worth having classes.
    overheads
        What classifying and routing cost.
    """

    search: str = "ii"
    start: str = "route"
    routes: str = "dynamic"
    tuples_max: int = 16
    iterations_max: int = 8
    seconds_max: float | None = 5.0
    planning_s_max: float | None = 2.0
    depth_max: int = 4
    gain_min: float = 0.03
    overheads: Overheads = field(default_factory=Overheads)

    def __post_init__(self) -> None:
        for name, value, known in (
            ("search", self.search, SEARCHES),
            ("start", self.start, tuple(STARTS)),
            ("routes", self.routes, tuple(ROUTE_FINDERS)),
        ):
            if value not in known:
                raise EddylineError(f"{name} is {value!r}; it must be one of {', '.join(known)}")
        if self.search == "opt" and self.tuples_max > OPTIMAL_TUPLES_MAX:
            raise EddylineError(
                f"search is 'opt' and tuples_max {self.tuples_max}: looking at every partition "
                f"takes at most {OPTIMAL_TUPLES_MAX} training tuples"
            )
        if self.tuples_max < 2:
            raise EddylineError(f"tuples_max is {self.tuples_max}; it must be at least 2")
        for name, limit in (
            ("seconds_max", self.seconds_max),
            ("planning_s_max", self.planning_s_max),
        ):
            if limit is not None and limit <= 0:
                raise EddylineError(f"{name} is {limit}; it must be above 0, or None for no limit")
