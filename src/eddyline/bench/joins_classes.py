"""Classes of new rows with probe orders of their own, against one order for all.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 6.
"""

from __future__ import annotations

import numpy as np

from eddyline.bench.harness import Bench
from eddyline.bench.joins_workload import Fixed, StarJoin, answering_rows
from eddyline.bench.mesh_data import OPERATORS, skewed, uniform
from eddyline.joins.class_finder import PROBE_CLASSES
from eddyline.ordering.static import best_ordering

DATA = {"skewed (Poisson)": (skewed, "1.44"), "uniform": (uniform, "0.978")}


def classes(bench: Bench) -> None:
    """Count comparisons of a star join of six windows, in one order and by class."""
    rows = 30_000 if bench.quick else 2_000_000
    with bench.progress("classes", 3 * len(DATA)) as advance:
        for name, (make, paper) in DATA.items():
            rng = np.random.default_rng(bench.seed)
            data = make(rng, rows)
            run = answering_rows(rng, data.passed, data.attributes)
            best = best_ordering(~data.passed[:100_000], np.ones(OPERATORS))
            variants = {
                "the best single order": StarJoin(OPERATORS, Fixed(best), seed=bench.seed),
                "one adaptive order": StarJoin(OPERATORS, seed=bench.seed),
                "classes": StarJoin(OPERATORS, classes=PROBE_CLASSES, seed=bench.seed),
            }
            for variant in variants.values():
                variant.run(run)
                advance()
            own = variants.pop("classes").comparisons
            for other, join in variants.items():
                bench.add(
                    f"{name} rows: comparisons, {other} / classes of rows",
                    join.comparisons / own,
                    "x",
                    f"{own / rows:.2f} comparisons a row; profiling included",
                    paper if other == "the best single order" else None,
                )
