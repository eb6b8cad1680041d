"""Measures on this machine what the single steps of indexes cost."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from eddyline.index.bit_address import BitAddress
from eddyline.index.bit_map import BitMap
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.cost import UnitCosts
from eddyline.index.index import Index, Pattern
from eddyline.index.key_map import KeyMap
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.rivals.batch_join import BatchJoin
from eddyline.index.sorted_hash import SortedHash

_ROWS_BITS = 15
_PROBES = 2_000
#: Bits by which searches differ whose times are compared.
_STEP_BITS = 5
_LEAST_NS = 0.1


def calibrate(rounds: int = 5) -> UnitCosts:
    """Return unit costs, from the fastest of some rounds.

    Parameters
    ----------
    rounds
        Number of rounds.

    Examples
    --------
    >>> costs = calibrate(rounds=1)
    >>> costs.insert_ns > 0 and costs.compare_ns > 0 and costs.sort_ns > 0
    True

    """
    rng = np.random.default_rng(0)
    rows = 1 << _ROWS_BITS
    codes = [rng.integers(0, 1 << 64, rows, dtype=np.uint64) for _ in range(2)]
    columns = Columns(codes, [None, None])
    half = _ROWS_BITS - _STEP_BITS

    def index_of(*bits: int) -> BitAddress:
        return BitAddress(columns, KeyMap(Configuration(bits), tuple(map(BitMap, bits))))

    def search(index: Index, pattern: Pattern, probes: int) -> Callable[[], object]:
        given = [codes[column][:probes] for column in pattern]

        def run() -> object:
            found, positions = index.ranges(pattern, given).expand()
            return index.confirm(pattern, positions, [column[found] for column in given])

        return run

    exact, wide, walked = index_of(_ROWS_BITS, 0), index_of(half, 0), index_of(_STEP_BITS, half)
    sorted_hash = LazyHash(columns)
    sorted_hash.build((0,))
    steps: dict[str, Callable[[], object]] = {
        "insert": lambda: index_of(half, _STEP_BITS),
        "sort": lambda: SortedHash(codes[:1]),
        "hash": search(sorted_hash, (0,), _PROBES),
        "scan": search(BatchJoin(columns), (0,), 1),
        "call": search(exact, (0,), 1),
        "exact": search(exact, (0,), _PROBES),
        "pair": search(exact, (0, 1), _PROBES),
        "wide": search(wide, (0,), _PROBES),
        "walked": search(walked, (1,), _PROBES),
    }
    ns = {name: min(_nanoseconds(step) for _ in range(rounds)) for name, step in steps.items()}
    more = (1 << _STEP_BITS) - 1  # candidates, or ranges, beyond the first
    compare_ns = max((ns["wide"] - ns["exact"]) / _PROBES / more, _LEAST_NS)
    # The walked search visits more ranges, with as many candidates as the wide one.
    visit_ns = max((ns["walked"] - ns["wide"]) / _PROBES / more, _LEAST_NS)
    return UnitCosts(
        hash_ns=max((ns["pair"] - ns["exact"]) / _PROBES, _LEAST_NS),
        compare_ns=compare_ns,
        insert_ns=ns["insert"] / rows,
        visit_ns=visit_ns,
        call_ns=ns["call"],
        search_ns=ns["exact"] / _PROBES,
        sort_ns=ns["sort"] / rows,
        exact_ns=ns["hash"] / _PROBES,
        scan_ns=ns["scan"] / rows,
    )


def _nanoseconds(step: Callable[[], object]) -> float:
    began = time.perf_counter_ns()
    step()
    return float(time.perf_counter_ns() - began)
