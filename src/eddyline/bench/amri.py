"""`eddyline bench amri`: the experiments of the paper on AMRI, and indexes against each other.

Most parts count: rows compared, ranges looked up, index entries. They do not depend on the machine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from eddyline.bench import amri_figures as figures
from eddyline.bench.amri_bits import all_bits, tuple_by_tuple
from eddyline.bench.amri_indexes import build, memory
from eddyline.bench.amri_probe import probe
from eddyline.bench.amri_tracking import tracking
from eddyline.bench.amri_wide import wide
from eddyline.bench.harness import Bench


def run(bench: Bench) -> None:
    """Run all parts, or one of them."""
    parts: dict[str, Callable[[Bench], None]] = {
        "assessment": figures.assessments,
        "schedule": figures.schedules,
        "migration": figures.migrations,
        "hashes": figures.hash_counts,
        "rivals": figures.rivals,
        "bits": all_bits,
        "tuples": tuple_by_tuple,
        "paths": figures.paths,
        "tracking": tracking,
        "memory": memory,
        "probe": probe,
        "build": build,
        "wide": wide,
    }
    if bench.data is not None:
        parts["lab"] = figures.lab
    bench.run_parts({name: functools.partial(part, bench) for name, part in parts.items()})
