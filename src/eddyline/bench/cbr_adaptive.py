"""What columns of each kind tell, and how routing follows rows that change: counted, not timed.

The paper has classes told apart by small integers, and rows that do not change. Here a column of
any type has to be found, and an eddy that learns more must not follow changes later than the eddy
without content (section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray
from eddyline.bench.cbr_data import (
    HARD_KINDS,
    KINDS,
    classes_by_column,
    rotating,
)
from eddyline.bench.harness import Bench
from eddyline.bench.stream_star import source_based_calls
from eddyline.ordering.static import ordering_cost

POLICIES = ("content", "auto")
PERIODS = (2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
FAST_PERIODS = (2_000, 3_000, 5_000, 10_000)
ROWS = 100_000  # of each kind of column

#: Routes rows with these answers and columns by a policy; returns the evaluations a row.
Evaluations = Callable[[BoolArray, Mapping[str, pa.Array], str], float]


def columns(bench: Bench, evaluations: Evaluations, scale: int) -> None:
    """Count the evaluations where a column of each kind tells two classes apart."""
    with bench.progress("kinds of columns", len(KINDS) * len(POLICIES)) as advance:
        for number, kind in enumerate(KINDS):
            rng = np.random.default_rng([bench.seed, number])
            passed, column = classes_by_column(rng, kind, ROWS // scale)
            _count(bench, evaluations, kind, passed, column, advance)


def limits(bench: Bench, evaluations: Evaluations, scale: int) -> None:
    """Count the evaluations where classes are found late, or change with the values."""
    with bench.progress(
        "columns that show classes late", len(HARD_KINDS) * len(POLICIES)
    ) as advance:
        for number, (kind, make) in enumerate(HARD_KINDS.items()):
            rng = np.random.default_rng([bench.seed, number])
            passed, column = make(rng, ROWS // scale)
            _count(bench, evaluations, kind, passed, column, advance)


def _count(
    bench: Bench,
    evaluations: Evaluations,
    kind: str,
    passed: BoolArray,
    column: pa.Array,
    advance: Callable[[], None],
) -> None:
    one_order = min(ordering_cost(order, ~passed, np.ones(2)) for order in ((0, 1), (1, 0)))
    for policy in POLICIES:
        bench.add(
            f"two classes told apart by a column, {kind}: {policy}",
            evaluations(passed, {"x": column}, policy),
            "evaluations a row",
            f"1.05 if classes are known; {one_order:.2f} in the best order",
        )
        advance()


def changes(bench: Bench, evaluations: Evaluations, fast: Evaluations, scale: int) -> None:
    """Count the evaluations where another filter is the best one after every so many rows.

    Parameters
    ----------
    bench
        Where the figures go.
    evaluations
        Of filters that pay for any profile.
    fast
        Of filters of 1 us, whose profiles have the default budget.
    scale
        By what the rows are divided.

    """
    cases = [(4, period, evaluations) for period in PERIODS]
    cases += [(6, period, fast) for period in FAST_PERIODS]
    with bench.progress("rows that change", len(cases) * len(POLICIES)) as advance:
        for filters, period, counted in cases:
            rows = max(400_000, 2 * period) // scale
            passed = rotating(bench.seed + period, period, rows, filters)
            rng = np.random.default_rng(bench.seed)
            noise = {
                "number": pa.array(rng.random(len(passed))),
                "code": pa.array(rng.integers(0, 30, len(passed))),
            }
            rival = source_based_calls(rng, passed)
            written = ordering_cost(range(filters), ~passed, np.ones(filters))
            kind = "fast filters" if counted is fast else "filters"
            for policy in POLICIES:
                calls = counted(passed, noise, policy)
                bench.add(
                    f"best of {filters} {kind} changes every {period:,} rows: evaluations, "
                    f"{policy} / source-based routing",
                    calls / rival,
                    "x",
                    f"{calls:.2f} a row; as written {written:.2f}, source-based {rival:.2f}",
                )
                advance()
