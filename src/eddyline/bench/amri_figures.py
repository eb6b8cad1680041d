"""Figures 8, 9 and 10 of the AMRI paper: work per result of index methods on four joined streams.

The ratios are of work per result, of a rival and of AMRI, priced at the unit costs of indexes. The
paper reports ratios of results in a fixed time.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

from eddyline.bench.amri_case import (
    BITS,
    Case,
    compare,
    hybrid,
    make_case,
    paper_8,
    paper_9,
    rivals_of,
    work_in_words,
)
from eddyline.bench.amri_data import LAB_STEPS, PHASE_ROWS, lab_streams
from eddyline.bench.amri_methods import Training
from eddyline.bench.amri_trace import EXPLORED_SHARE, WINDOW_ROWS, trace_of
from eddyline.bench.amri_work import Replay
from eddyline.bench.harness import Bench
from eddyline.index.assessment import CDIA, CSRIA, DIA, SRIA, Assessment
from eddyline.index.migration import MIGRATIONS
from eddyline.index.schedules import Continuous, Hybrid, Periodic, Schedule, Triggered
from eddyline.index.tuning_options import TuningOptions

#: Rows of a phase that lasts four windows, unlike the paper's.
LONG_PHASE_ROWS = 4 * WINDOW_ROWS


def assessments(bench: Bench) -> None:
    """Fig 8 a: which method of assessment."""
    case = make_case(bench)
    methods: dict[str, Callable[[], Assessment]] = {
        "SRIA": SRIA,
        "CSRIA": lambda: CSRIA(0.05, 0.1),
        "DIA": DIA,
        "CDIA random": lambda: CDIA(0.05, 0.1, "random", bench.seed),
        "CDIA": lambda: CDIA(0.05, 0.1, "highest_count"),
    }
    runs = {
        name: functools.partial(case.amri, dataclasses.replace(paper_8(), assessment=method))
        for name, method in methods.items()
    }
    papers = {"SRIA": 1.19, "DIA": 1.19, "CSRIA": 1.30, "CDIA random": None}
    compare(bench, f"fig 8 a, {BITS} bits, hybrid 60,000/100,000", case, runs, "CDIA", papers)


def schedules(bench: Bench) -> None:
    """Fig 8 b: which schedule."""
    case = make_case(bench)
    every: dict[str, Callable[[], Schedule]] = {
        "periodic": lambda: Periodic.paper(60_000),
        "triggered": lambda: Triggered.paper(100_000),
        "continuous": lambda: Continuous.paper(60_000),
        "hybrid": lambda: Hybrid.paper(60_000, 100_000),
    }
    runs = {
        name: functools.partial(case.amri, dataclasses.replace(paper_8(), schedule=schedule))
        for name, schedule in every.items()
    }
    papers = {"periodic": 1.65, "triggered": 1.29, "continuous": 1.18}
    compare(bench, f"fig 8 b, {BITS} bits, CDIA", case, runs, "hybrid", papers)


def migrations(bench: Bench) -> None:
    """Fig 8 c: which migration, in the paper's phases and in longer ones."""
    for phase_rows in (PHASE_ROWS, LONG_PHASE_ROWS):
        case = make_case(bench, phase_rows=phase_rows)
        runs = {
            name: functools.partial(
                case.amri, dataclasses.replace(paper_8(), migration=migration())
            )
            for name, migration in MIGRATIONS.items()
        }
        paper = 1.19 if phase_rows == PHASE_ROWS else None
        figure = f"fig 8 c, {BITS} bits, phases of {phase_rows:,}"
        compare(bench, figure, case, runs, "nothing", {"all": paper, "partial": paper})


def hash_counts(bench: Bench) -> None:
    """Fig 9 a: how many adaptive hash indices."""
    case = make_case(bench)
    runs = {
        f"{count} hash indices": functools.partial(case.hashes, count, hybrid())
        for count in range(1, 8)
    }
    papers: dict[str, float | str | None] = dict.fromkeys(list(runs)[:-1], "above 1")
    compare(bench, "fig 9 a, adaptive", case, runs, "7 hash indices", papers)


def rivals(bench: Bench) -> None:
    """Fig 9 b: AMRI against the best hash indices, and a bitmap that stays."""
    for phase_rows in (PHASE_ROWS, LONG_PHASE_ROWS):
        case = make_case(bench, phase_rows=phase_rows)
        label = f"phases of {phase_rows:,}"
        papers: dict[str, float | str | None] = {"7 hash indices": 1.93, "static bitmap": 1.75}
        if phase_rows != PHASE_ROWS:
            papers = dict.fromkeys(papers)
        runs = rivals_of(case)
        replays = compare(bench, f"fig 9 b, {BITS} bits, {label}", case, runs, "AMRI", papers)
        _with_our_tuning(bench, f"fig 9 b, {BITS} bits, {label}", case, replays)


def _with_our_tuning(bench: Bench, figure: str, case: Case, runs: Mapping[str, Replay]) -> None:
    """Compare AMRI with the defaults of the engine, and with hash indices at another price."""
    own = runs["AMRI, our tuning"]
    for name in ("7 hash indices", "static bitmap, our selection", "AMRI"):
        bench.add(
            f"{figure}: work per result, {name} / AMRI, our tuning",
            runs[name].per_result_ns / own.per_result_ns,
            "x",
            f"AMRI, our tuning: {work_in_words(own)}; {case.setting}",
        )
    hashes, amri = runs["7 hash indices"], runs["AMRI"]
    more_entries = hashes.work.made + hashes.work.deleted - amri.work.made - amri.work.deleted
    bench.add(
        f"{figure}: price of an index entry from which AMRI beats 7 hash indices",
        (amri.cost_ns - hashes.cost_ns) / more_entries,
        "ns more",
        "an entry of a sorted array costs 5 ns, one of a linked hash table some 100",
    )


def lab(bench: Bench) -> None:
    """Fig 9 c: the Lab data."""
    assert bench.data is not None
    rows = 5_000 if bench.quick else 60_000
    streams = lab_streams(bench.data, 2 * rows)
    halves = [
        dataclasses.replace(
            streams, codes=[[c[part] for c in columns] for columns in streams.codes]
        )
        for part in (slice(0, streams.rows // 2), slice(streams.rows // 2, streams.rows))
    ]
    first, second = (trace_of(half, seed=bench.seed) for half in halves)
    steps = ", ".join(f"{name} to {step}" for name, step in LAB_STEPS.items())
    tuples = 4 * second.streams.rows
    setting = (
        f"Lab readings ({steps}), {tuples:,} tuples, {second.requests / tuples:.1f} searches and "
        f"{second.results / tuples:.2f} results each; path: fewest searches for a sample"
    )
    case = Case(second, Training.of(first), setting)
    papers: dict[str, float | str | None] = {"7 hash indices": 1.68, "static bitmap": 1.15}
    figure = f"fig 9 c, {BITS} bits"
    replays = compare(bench, figure, case, rivals_of(case), "AMRI", papers)
    _with_our_tuning(bench, figure, case, replays)


def paths(bench: Bench) -> None:
    """Fig 10: how many query paths streams have."""
    cases: list[tuple[str, tuple[int, ...], float, float | str]] = [
        ("a, constant path", (1, 1, 1, 1), 0.0, "below 1 for 3 static indices"),
        ("b, one adapting path", (6, 6, 6, 6), 0.0, 1.35),
        ("c, 1 stream with 2 paths", (2, 6, 6, 6), EXPLORED_SHARE, 1.73),
        ("d, 2 streams with 2 paths", (2, 2, 6, 6), EXPLORED_SHARE, 1.43),
        ("e, 3 streams with 2 paths", (2, 2, 2, 6), EXPLORED_SHARE, 1.24),
    ]
    for name, counts, explored_share, paper in cases:
        case = make_case(bench, counts, explored_share)
        is_static = max(counts) == 1
        runs = {
            f"{count} hash indices": functools.partial(
                case.hashes, count, None if is_static else hybrid()
            )
            for count in (1, 3, 5, 7)
        }
        own = {
            "AMRI": functools.partial(case.amri, paper_9()),
            "AMRI, our tuning": functools.partial(case.amri, TuningOptions(bits=BITS)),
        }
        papers: dict[str, float | str | None] = dict.fromkeys(runs, paper if is_static else None)
        if not is_static:
            papers["7 hash indices"] = paper
        papers["AMRI, our tuning"] = None
        figure = f"fig 10 {name}, {BITS} bits, {'static' if is_static else 'adaptive'}"
        compare(bench, figure, case, {**own, **runs}, "AMRI", papers)
