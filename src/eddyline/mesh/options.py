"""Parameters of the search for a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    iterations_max, plateau_max, seconds_max
        Stop conditions: iterations, iterations in a row without an improvement, and time. None: no
        limit. An iteration is a descent of `ii` or six temperatures of `sa`; for `opt` only the
        time counts.
    planning_s_max
        Limit for everything that is done before the first row: reading sampled rows, timing
        conditions, searching. What is not found by then is not used. None: no limit.
    depth_max
        Of the classifier. A test costs little, and a column whose ranges alternate between classes
        takes one for each range.
    gain_min
        Smallest saving, as a share of the best single order's cost, that is worth having classes.
    overheads
        What classifying and routing cost (`eddyline.mesh.Overheads`). None: what they cost where
        the rows are, in Python or in Spark.
    ruster_rows_min
        Smallest number of rows of one class that travel by themselves; fewer take the default
        route. None: 100, or a sixteenth of small batches. Python predicates only.
    correlated_rows
        If rows that arrive together are known to be of one class: in each window of so many rows
        the first is classified, and the others take its route. None: every row is classified.
        Python predicates only.
    """

    search: str = "ii"
    start: str = "route"
    routes: str = "dynamic"
    tuples_max: int = 16
    iterations_max: int = 8
    plateau_max: int | None = 4
    seconds_max: float | None = 5.0
    planning_s_max: float | None = 2.0
    depth_max: int = 8
    gain_min: float = 0.03
    overheads: Overheads | None = None
    ruster_rows_min: int | None = None
    correlated_rows: int | None = None

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
            ("plateau_max", self.plateau_max),
        ):
            if limit is not None and limit <= 0:
                raise EddylineError(f"{name} is {limit}; it must be above 0, or None for no limit")
        for name, least in (
            ("iterations_max", self.iterations_max),
            ("depth_max", self.depth_max),
            ("ruster_rows_min", self.ruster_rows_min),
            ("correlated_rows", self.correlated_rows),
        ):
            if least is not None and least < 1:
                raise EddylineError(f"{name} is {least}; it must be at least 1")

    @classmethod
    def paper(cls, table: Literal[1, 3] = 1) -> MeshOptions:
        """Return the paper's own parameters, of its Table 1 or its Table 3.

        Table 1 is iterative improvement from the route-driven start with 10 training tuples; Table
        3 is simulated annealing from the content-driven start with 100. The sample of 1,000 rows
        is given as `sample`, or collected on the way.

        Parameters
        ----------
        table
            Number of the table: 1 or 3.

        Examples
        --------
        >>> MeshOptions.paper().search, MeshOptions.paper(table=3).start
        ('ii', 'content')

        """
        tables: dict[int, tuple[str, str, int]] = {
            1: ("ii", "route", 10),
            3: ("sa", "content", 100),
        }
        if table not in tables:
            raise EddylineError(f"table is {table}; parameters are in Tables 1 and 3")
        search, start, tuples_max = tables[table]
        return cls(
            search=search,
            start=start,
            tuples_max=tuples_max,
            iterations_max=3,
            plateau_max=None,
            seconds_max=None,
            planning_s_max=None,
            ruster_rows_min=100,
        )
