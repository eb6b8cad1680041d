"""Operators that content-based routing need not profile: their place in the order is clear.

References
----------
Bizarro et al., Content-Based Routing, VLDB 2005, section 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddyline.arrays import FloatArray

FIXED_PLACE_TIMES = 10.0


def fixed_operators(selectivity: FloatArray, cost_us: FloatArray) -> Sequence[int]:
    """Return operators so cheap or selective beside all others, or so little, that their place
    in the order is plain whatever the row.

    Examples
    --------
    >>> fixed_operators(np.array([0.5, 0.5, 0.5]), np.array([1.0, 2.0, 100.0]))
    [2]

    """
    if len(selectivity) < 2:
        return list(range(len(selectivity)))
    rank = np.maximum(1.0 - selectivity, 1e-3) / np.maximum(cost_us, 1e-4)
    by_rank = np.argsort(rank)
    fixed = []
    if rank[by_rank[-1]] > FIXED_PLACE_TIMES * rank[by_rank[-2]]:
        fixed.append(int(by_rank[-1]))
    if FIXED_PLACE_TIMES * rank[by_rank[0]] < rank[by_rank[1]]:
        fixed.append(int(by_rank[0]))
    return sorted(set(fixed))
