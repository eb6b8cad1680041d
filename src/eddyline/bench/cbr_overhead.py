"""What content-based routing takes besides operators: section 6.4 of the paper, and more operators.

Measured are the CPU time of this process and the router's own count of time outside operators. Data
with classes show what routing by class takes; data without show what looking for classes in vain
takes, against the best order with no learning at all.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from eddyline.bench.harness import Bench, mean_of, ratio
from eddyline.bench.stream_star import Stream, make_stream, skewed
from eddyline.content import ContentOptions
from eddyline.fabric import Router
from eddyline.fabric.tactics.choose import RoutingPolicy
from eddyline.operators import Batch, ColumnReader
from eddyline.testing.synthetic import SyntheticFilter, to_columns

OPERATORS = (2, 4, 8)
COSTS_US = (5.0, 20.0, 100.0)
OPERATOR_S = 1.2  # inside operators, for each run: so many rows are routed
LONG = 4  # times as many rows, too: most of what learning takes, it takes at the start
ROUNDS = 3
BATCH_ROWS = 10_000

#: Sends a stream through a router with operators of so many probes; returns the router.
Route = Callable[[Stream, RoutingPolicy, int], Router]


def overhead(bench: Bench, route: Route, scale: int) -> None:
    """Measure what routing by content takes, for several numbers and costs of operators."""
    probe_us = _probe_us()
    for cost_us in COSTS_US:
        probes = max(1, round(cost_us / probe_us))
        _one_operator(bench, cost_us, probes, scale)
        for operators in OPERATORS:
            rows = int(OPERATOR_S * 1e6 / cost_us / 1.5) // scale
            for length in (rows, LONG * rows):
                _with_classes(bench, route, operators, cost_us, probes, length)
            _without_classes(bench, route, operators, cost_us, probes, rows)


def _with_classes(
    bench: Bench, route: Route, operators: int, cost_us: float, probes: int, rows: int
) -> None:
    stream = make_stream(np.random.default_rng(bench.seed), skewed(operators, 0.1), rows)
    shares, parts = [], []
    for _ in range(ROUNDS):
        totals = route(stream, ContentOptions(), probes).totals
        whole_us = float(totals.busy_us.sum()) + totals.overhead_us
        shares.append(100 * totals.overhead_us / whole_us)
        parts.append(100 * totals.profiling_us / whole_us)
    bench.add(
        f"overhead: {operators} operators of {cost_us:g} us, classes, {rows:,} rows: time outside "
        "operators",
        statistics.median(shares),
        "%",
        f"of it evaluating and counting to learn {statistics.median(parts):.1f} %",
        "4-5",
    )


def _without_classes(
    bench: Bench, route: Route, operators: int, cost_us: float, probes: int, rows: int
) -> None:
    """All rows have the same selectivities, in the written order the best one first."""
    own = np.sort(skewed(operators, 0.1)[0])
    stream = make_stream(np.random.default_rng(bench.seed), np.tile(own, (operators, 1)), rows)
    evaluations: dict[str, list[float]] = {"best order": [], "content": []}

    def counted(name: str, policy: RoutingPolicy) -> None:
        totals = route(stream, policy, probes).totals
        evaluations[name].append(float((totals.seen + totals.profiled).sum()))

    runs: dict[str, Callable[[], object]] = {
        "best order": lambda: counted("best order", "as_written"),
        "content": lambda: counted("content", ContentOptions()),
        "again": lambda: route(stream, "as_written", probes),
    }
    what = f"overhead: {operators} operators of {cost_us:g} us"
    seconds = bench.in_turn(what, runs, ROUNDS, is_warm=True, clock=time.process_time)
    bench.add(
        f"{what}, no classes: CPU time, Content-Learns / best order",
        ratio(seconds["content"], mean_of(seconds["best order"], seconds["again"])),
        "x",
        f"{rows:,} rows; control {ratio(seconds['again'], seconds['best order']):.3f}; evaluations "
        f"{ratio(evaluations['content'], evaluations['best order']):.3f} x",
    )


def _one_operator(bench: Bench, cost_us: float, probes: int, scale: int) -> None:
    """Compare a router of one operator, which has nothing to choose, with bare calls of it."""
    rows = int(OPERATOR_S * 1e6 / cost_us / 2) // scale
    passed = np.random.default_rng(bench.seed).random((rows, 1)) < 0.5
    (answers,) = to_columns(passed)
    operator, readers = SyntheticFilter("Op1", 0, probes), [ColumnReader("answer_0")]
    columns = [answers, pa.array(np.arange(rows) % 7)]

    def batches() -> list[list[pa.Array]]:
        begins = range(0, rows, BATCH_ROWS)
        return [[column.slice(begin, BATCH_ROWS) for column in columns] for begin in begins]

    def bare() -> None:
        for batch in batches():
            operator.evaluate(Batch(batch[:1], readers, len(batch[0])), None)

    def routed() -> None:
        both = [*readers, ColumnReader("kind")]
        router = Router([operator], both, ContentOptions(), attributes={"kind": 1})
        for batch in batches():
            router.route(batch, len(batch[0]))

    runs = {"bare": bare, "content": routed, "again": bare}
    what = f"overhead: 1 operator of {cost_us:g} us"
    seconds = bench.in_turn(what, runs, ROUNDS, is_warm=True, clock=time.process_time)
    bench.add(
        f"{what}: CPU time, Content-Learns / calls of the operator",
        ratio(seconds["content"], mean_of(seconds["bare"], seconds["again"])),
        "x",
        f"{rows:,} rows; control {ratio(seconds['again'], seconds['bare']):.3f}",
        "1.008",
    )


def _probe_us() -> float:
    """Return what a probe of a synthetic filter takes, to set its cost in microseconds."""
    probes, rows = 500, 1_000
    columns = to_columns(np.ones((rows, 1), dtype=bool))
    batch = Batch(columns, [ColumnReader("answer_0")], rows)
    operator = SyntheticFilter("Op1", 0, probes)
    times = []
    for _ in range(5):
        began = time.process_time()
        operator.evaluate(batch, None)
        times.append(time.process_time() - began)
    return min(times) * 1e6 / (rows * probes)
