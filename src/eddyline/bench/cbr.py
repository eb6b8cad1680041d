"""`eddyline bench cbr`: the experiments of the paper on content-based routing (its section 6).

A routing call is one visit of one row to one operator: it is counted, and does not depend on the
machine. Compared are source-based routing (SBR, the eddy without content), Content-Learns with the
paper's parameters and with Eddyline's, and Content-Knows, which is told the classes.
"""

from __future__ import annotations

import pathlib
import statistics
import time
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray
from eddyline.bench import lab as lab_data
from eddyline.bench.cbr_adaptive import changes, columns, limits
from eddyline.bench.cbr_overhead import overhead
from eddyline.bench.harness import Bench, mean_of, ratio
from eddyline.bench.stream_star import (
    Stream,
    calls_in_orders,
    knowing_calls,
    make_stream,
    random_selectivities,
    skewed,
    source_based_calls,
)
from eddyline.content import NO_ATTRIBUTE, ContentOptions
from eddyline.fabric import Router, RouterOptions
from eddyline.fabric.operator_array import RouteTrace
from eddyline.fabric.tactics.choose import RoutingPolicy
from eddyline.fabric.tactics.content import ContentTactic
from eddyline.fabric.tactics.tactic import Ruster
from eddyline.operators import Batch, ColumnReader
from eddyline.ordering.static import best_ordering
from eddyline.testing.synthetic import SyntheticFilter, to_columns

SKEWS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95)
JOINS = (2, 4, 6, 8)
VARIANTS = {"paper's settings": ContentOptions.paper(), "Eddyline's": ContentOptions()}
BATCH_ROWS = 10_000
DEFAULT_BUDGET = RouterOptions().budget
COUNTED_COST_US = 20.0  # of an operator, where calls are only counted
FAST_COST_US = 1.0


def run(bench: Bench) -> None:
    """Run all experiments and note their numbers."""
    scale = 5 if bench.quick else 1

    def evaluations(
        passed: BoolArray, attributes: Mapping[str, pa.Array], policy: RoutingPolicy
    ) -> float:
        return _calls(_route(passed, attributes, policy, bench.seed), len(passed))

    def fast(passed: BoolArray, attributes: Mapping[str, pa.Array], policy: RoutingPolicy) -> float:
        router = _route(passed, attributes, policy, bench.seed, fast_us=FAST_COST_US)
        return _calls(router, len(passed))

    parts = {
        "skew": lambda: _varying_skew(bench, scale),
        "random": lambda: _random_selectivities(bench, scale),
        "aggregate": lambda: _aggregate_selectivity(bench, scale),
        "costs": lambda: _operator_cost(bench, scale),
        "nothing": lambda: _nothing_to_gain(bench, scale),
        "columns": lambda: columns(bench, evaluations, scale),
        "limits": lambda: limits(bench, evaluations, scale),
        "changes": lambda: changes(bench, evaluations, fast, scale),
        "overhead": lambda: overhead(
            bench, lambda stream, policy, probes: _timed(stream, policy, bench.seed, probes), scale
        ),
    }
    if (data := bench.data) is not None:
        parts["lab"] = lambda: _lab(bench, data, scale)
    bench.run_parts(parts)


def _route(
    passed: BoolArray,
    attributes: Mapping[str, pa.Array],
    policy: RoutingPolicy,
    seed: int,
    probes: int = 0,
    counter: AttributeCounter | None = None,
    fast_us: float | None = None,
) -> Router:
    """Send all rows through a router with the policy; return it.

    Calls are counted at given costs and without a budget, unless operators do real work (`probes`)
    or are fast ones (`fast_us`), which learn within the default budget.
    """
    operators = passed.shape[1]
    filters = [SyntheticFilter(f"Op{n + 1}", n, probes) for n in range(operators)]
    names = [f"answer_{n}" for n in range(operators)] + list(attributes)
    options = RouterOptions(
        costs_us=None if probes else (fast_us or COUNTED_COST_US,) * operators,
        seed=seed,
        budget=DEFAULT_BUDGET if probes or fast_us else None,
    )
    positions = {name: operators + n for n, name in enumerate(attributes)}
    router = Router(
        filters,
        [ColumnReader(name) for name in names],
        policy,
        options=options,
        attributes=positions,
    )
    tactic = router.segments[0].tactic
    if counter is not None and isinstance(tactic, ContentTactic):
        counter.watch(tactic, list(attributes))
    columns = to_columns(passed) + list(attributes.values())
    for begin in range(0, len(passed), BATCH_ROWS):
        part = [column.slice(begin, BATCH_ROWS) for column in columns]
        router.route(part, len(part[0]))
    return router


def _calls(router: Router, rows: int) -> float:
    """Return routing calls a row, those for learning included."""
    return float((router.totals.seen + router.totals.profiled).sum()) / rows


# --- figures 3 and 4 -------------------------------------------------------------------------


def _varying_skew(bench: Bench, scale: int) -> None:
    fewer: dict[str, dict[str, list[float]]] = {v: {"A<B": [], "A>B": []} for v in VARIANTS}
    against_knows: dict[str, list[float]] = {v: [] for v in VARIANTS}
    largest: dict[str, float] = {}
    with bench.progress("figs 3, 4: varying skew", len(JOINS) * len(SKEWS)) as advance:
        for joins in JOINS:
            for selectivity_a in SKEWS:
                rng = np.random.default_rng(bench.seed + joins)
                table = skewed(joins, selectivity_a)
                stream = make_stream(rng, table, 100_000 // scale)
                sbr = source_based_calls(rng, stream.passed)
                knows = knowing_calls(stream)
                for name, options in VARIANTS.items():
                    router = _route(stream.passed, stream.attributes, options, bench.seed)
                    calls = _calls(router, len(stream.passed))
                    side = "A<B" if selectivity_a < table[0, 1] else "A>B"
                    fewer[name][side].append(100 * (1 - calls / sbr))
                    against_knows[name].append(calls / knows)
                    if joins == 8 and selectivity_a == SKEWS[0]:
                        largest[name] = 100 * (1 - calls / sbr)
                    if joins in (2, 6):
                        bench.add(
                            f"fig {3 if joins == 2 else 4}: {joins} joins, A={selectivity_a}: "
                            f"routing calls, Content-Learns ({name}) against SBR",
                            100 * (1 - calls / sbr),
                            "% fewer",
                            f"SBR {sbr:.3f} calls a row; Content-Knows {knows:.3f}",
                        )
                advance()
    for name in VARIANTS:
        bench.add(
            f"8 joins, largest skew: routing calls, Content-Learns ({name})",
            largest[name],
            "% fewer",
            "SBR",
            "67.8",
        )
        for side, paper in (("A<B", "26.9"), ("A>B", "10.2")):
            bench.add(
                f"average over all experiments with {side}: Content-Learns ({name})",
                statistics.mean(fewer[name][side]),
                "% fewer",
                "SBR",
                paper,
            )
        bench.add(
            f"routing calls, Content-Learns ({name}) / Content-Knows, worst of all skews",
            max(against_knows[name]),
            "x",
            "Content-Knows",
        )


# --- figures 5, 6 and 7 ----------------------------------------------------------------------


def _random_selectivities(bench: Bench, scale: int) -> None:
    streams = 50 // scale
    wrong: dict[str, list[float]] = {v: [] for v in VARIANTS}
    with bench.progress("figs 5, 6: random selectivities", len(JOINS) * streams) as advance:
        for joins in JOINS:
            fewer: dict[str, list[float]] = {v: [] for v in VARIANTS}
            for number in range(streams):
                rng = np.random.default_rng(bench.seed + 1_000 * joins + number)
                stream = make_stream(rng, random_selectivities(rng, joins), 100_000 // scale)
                sbr = source_based_calls(rng, stream.passed)
                for name, options in VARIANTS.items():
                    counter = AttributeCounter()
                    router = _route(
                        stream.passed, stream.attributes, options, bench.seed, counter=counter
                    )
                    fewer[name].append(100 * (1 - _calls(router, len(stream.passed)) / sbr))
                    wrong[name].append(counter.wrong_share())
                advance()
            for name in VARIANTS:
                bench.add(
                    f"fig 6: {joins} joins, random selectivities: routing calls, "
                    f"Content-Learns ({name})",
                    statistics.mean(fewer[name]),
                    "% fewer",
                    f"SBR; mean of {streams} streams",
                )
    for name in VARIANTS:
        bench.add(
            f"fig 5: routing calls that used a wrong classifier attribute ({name})",
            100 * statistics.mean(wrong[name]),
            "%",
            "attrC is the right one",
            "6.4",
        )


class AttributeCounter:
    """Counts, while rows are routed, which attributes decide and which ones profiles choose."""

    def __init__(self) -> None:
        #: Visits of rows to operators, by the attribute that decided on them (None: none did).
        self.calls: Counter[str | None] = Counter()
        #: Number of profiles of the first operator that chose each attribute.
        self.chosen: Counter[str | None] = Counter()

    def watch(self, tactic: ContentTactic, names: list[str]) -> None:
        """Count what a tactic does from now on."""
        content, observe, conclude = tactic.content, tactic.observe, tactic.content.conclude

        def name_of(attribute: int) -> str | None:
            return None if attribute == NO_ATTRIBUTE else names[attribute]

        def counted_observe(batch: Batch, ruster: Ruster, trace: RouteTrace) -> None:
            classifiers = tactic.check.classifiers()
            classifier = classifiers[min(ruster.side, len(classifiers) - 1)]
            for visit in trace.visits:
                self.calls[name_of(int(classifier[visit.operator]))] += visit.seen
            observe(batch, ruster, trace)

        def counted_conclude() -> int:
            attribute = conclude()
            if content.profiled == 0:
                self.chosen[name_of(attribute)] += 1
            return attribute

        tactic.observe = counted_observe  # type: ignore[method-assign]
        content.conclude = counted_conclude  # type: ignore[method-assign]

    def wrong_share(self) -> float:
        """Return the share of routing calls decided by an attribute other than attrC."""
        every = sum(self.calls.values())
        wrong = sum(count for name, count in self.calls.items() if name not in ("attrC", None))
        return wrong / every if every else 0.0


def _aggregate_selectivity(bench: Bench, scale: int) -> None:
    streams = 10 // min(scale, 2)
    levels = (0.05, 0.15, 0.25, 0.35)
    with bench.progress("fig 7: aggregate selectivity", len(levels) * streams) as advance:
        for aggregate in levels:
            fewer = []
            for number in range(streams):
                rng = np.random.default_rng(bench.seed + 77 * number)
                table = random_selectivities(rng, 6, aggregate)
                stream = make_stream(rng, table, 100_000 // scale)
                sbr = source_based_calls(rng, stream.passed)
                router = _route(stream.passed, stream.attributes, ContentOptions(), bench.seed)
                fewer.append(100 * (1 - _calls(router, len(stream.passed)) / sbr))
                advance()
            bench.add(
                f"fig 7: 6 joins, aggregate selectivity {aggregate}: routing calls, Content-Learns",
                statistics.mean(fewer),
                "% fewer",
                f"SBR; mean of {streams} streams",
            )


# --- figures 9 and 10, and nothing to gain ---------------------------------------------------


def _operator_cost(bench: Bench, scale: int) -> None:
    """Time Content-Learns against one order for all rows, at several costs of an operator."""
    rng = np.random.default_rng(bench.seed)
    stream = make_stream(rng, skewed(6, 0.1), 160_000 // scale)
    for probes in (50, 200, 800):
        runs = {
            "one order": lambda p=probes: _timed(stream, "agreedy", bench.seed, p),
            "content": lambda p=probes: _timed(stream, ContentOptions(), bench.seed, p),
            "again": lambda p=probes: _timed(stream, "agreedy", bench.seed, p),
        }
        seconds = bench.in_turn(f"figs 9, 10: {probes} probes an operator", runs, 3)
        router = _timed(stream, ContentOptions(), bench.seed, probes)
        totals = router.totals
        busy_us = float(totals.busy_us.sum())
        cost_us = busy_us / float(totals.seen.sum())
        bench.add(
            f"fig 9: operators of {cost_us:.1f} us: time, Content-Learns / A-Greedy in one order",
            ratio(seconds["content"], seconds["one order"]),
            "x",
            f"control {ratio(seconds['again'], seconds['one order']):.3f}",
        )
        whole_us = busy_us + totals.overhead_us
        bench.add(
            f"fig 10: operators of {cost_us:.1f} us: routing and learning",
            100 * totals.overhead_us / whole_us,
            "% of time",
            f"routing {100 * totals.routing_us / whole_us:.1f} %, learning "
            f"{100 * (totals.profiling_us + totals.deciding_us) / whole_us:.1f} %; "
            f"A-Greedy in one order {_overhead_share(stream, bench.seed, probes):.1f} %",
            "4-5",
        )


def _overhead_share(stream: Stream, seed: int, probes: int) -> float:
    """Return what one adaptive order spends on anything but operators, in percent of the time."""
    totals = _timed(stream, "agreedy", seed, probes).totals
    return 100 * totals.overhead_us / (float(totals.busy_us.sum()) + totals.overhead_us)


def _timed(stream: Stream, policy: RoutingPolicy, seed: int, probes: int) -> Router:
    return _route(stream.passed, stream.attributes, policy, seed, probes)


def _nothing_to_gain(bench: Bench, scale: int) -> None:
    """Compare with the best order where all rows want it, so that only overhead can differ.

    The paper has a query of one operator for that, which Eddyline does not route at all.
    """
    rng = np.random.default_rng(bench.seed)
    stream = make_stream(rng, np.array([[0.1, 0.6]] * 4), 400_000 // scale)
    router = _route(stream.passed, stream.attributes, ContentOptions(), bench.seed)
    calls = _calls(router, len(stream.passed))
    written = calls_in_orders(stream.passed, np.broadcast_to([0, 1], stream.passed.shape))
    bench.add(
        "nothing to gain, two operators: routing calls, Content-Learns / best order",
        calls / written,
        "x",
        f"{written:.3f} calls a row; the classes do not differ",
    )
    runs = {
        "best order": lambda: _timed(stream, "as_written", bench.seed, 200),
        "content": lambda: _timed(stream, ContentOptions(), bench.seed, 200),
        "again": lambda: _timed(stream, "as_written", bench.seed, 200),
    }
    seconds = bench.in_turn("nothing to gain", runs, 5)
    bench.add(
        "nothing to gain, two operators: time, Content-Learns / best order",
        ratio(seconds["content"], mean_of(seconds["best order"], seconds["again"])),
        "x",
        f"control {ratio(seconds['again'], seconds['best order']):.3f}",
        "1.008, with one operator",
    )


# --- the Lab data ----------------------------------------------------------------------------


def _lab(bench: Bench, data: pathlib.Path, scale: int) -> None:
    began = time.perf_counter()
    lab = lab_data.read_lab(data)
    bench.console.print(f"{len(lab):,} readings read in {time.perf_counter() - began:.0f} s")
    attributes = {name: pa.array(lab[name].to_numpy()) for name in lab_data.ATTRIBUTES}
    _lab_q1(bench, lab, attributes)
    queries = 50 // scale
    fewer, until_drop, static = [], [], []
    rng = np.random.default_rng(bench.seed)
    with bench.progress("Lab data, Q2", queries) as advance:
        for number in range(queries):
            passed = lab_data.answers_of(lab, lab_data.random_query(rng, lab))
            dropped = ~passed.all(axis=1)
            router = _route(passed, attributes, ContentOptions(), bench.seed + number)
            learns = _calls(router, len(passed))
            sbr = source_based_calls(rng, passed)
            fewer.append(100 * (1 - learns / sbr))
            best = np.broadcast_to(best_ordering(~passed, np.ones(passed.shape[1])), passed.shape)
            static.append(100 * (1 - calls_in_orders(passed, best) / sbr))
            # Rows that nothing drops visit every operator, whatever the route.
            kept_calls = (~dropped).mean() * passed.shape[1]
            if dropped.any():
                until_drop.append(100 * (1 - (learns - kept_calls) / (sbr - kept_calls)))
            advance()
    bench.add(
        f"Lab data, {queries} random Q2 queries: routing calls, Content-Learns",
        statistics.mean(fewer),
        "% fewer",
        f"SBR; median {statistics.median(fewer):.1f}",
        "8",
    )
    bench.add(
        f"Lab data, {queries} random Q2 queries: routing calls, best static order",
        statistics.mean(static),
        "% fewer",
        "SBR; found offline, over all readings",
    )
    bench.add(
        f"Lab data, {queries} random Q2 queries: routing calls until a row is dropped",
        statistics.mean(until_drop),
        "% fewer",
        f"SBR; median {statistics.median(until_drop):.1f}",
        "18",
    )


def _lab_q1(bench: Bench, lab: object, attributes: dict[str, pa.Array]) -> None:
    """Which attribute tells most about `light > 500`, and how often it changes (figure 8)."""
    passed = (lab["light"] > 500).to_numpy()[:, None]  # type: ignore[index]
    two = np.concatenate([passed, np.ones_like(passed)], axis=1)  # one operator is not routed
    counter = AttributeCounter()
    _route(two, attributes, ContentOptions(), bench.seed, counter=counter)
    counts = counter.chosen
    every = max(sum(counts.values()), 1)
    for name, count in sorted(counts.items(), key=lambda item: -item[1])[:3]:
        bench.add(
            f"fig 8: Q1, profiles that found {name or 'no attribute'} to tell most about light>500",
            100 * count / every,
            "%",
            f"{every} profiles",
        )
