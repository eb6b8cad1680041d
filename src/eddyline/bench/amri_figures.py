"""The figures of the AMRI paper: work per result of index methods, on four joined streams.

The ratios are of work per result, of a rival and of AMRI, priced at the unit costs of indexes. The
paper reports ratios of results in a fixed time.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence

from eddyline.bench.amri_data import LAB_STEPS, PHASE_ROWS, lab_streams, make_streams
from eddyline.bench.amri_methods import BitAddressMethod, HashMethod, Training
from eddyline.bench.amri_trace import EXPLORED_SHARE, WINDOW_ROWS, Trace, trace_of
from eddyline.bench.amri_work import IndexMethod, Replay, execute, replay
from eddyline.bench.harness import Bench
from eddyline.index.assessment import CDIA, CSRIA, DIA, SRIA, Assessment
from eddyline.index.migration import MIGRATIONS
from eddyline.index.schedules import Continuous, Hybrid, Periodic, Schedule, Triggered
from eddyline.index.tuner import TuningOptions

#: Bits of a bucket id: as many as 2,500 rows fill.
BITS = 11
#: Bits that are tried beside these.
ALL_BITS = (8, 10, 12, 14, 16)
#: Rows of a phase that lasts four windows, unlike the paper's.
LONG_PHASE_ROWS = 4 * WINDOW_ROWS


@dataclasses.dataclass(frozen=True)
class Case:
    """A join, and what was learnt from a training run.

    Parameters
    ----------
    trace
        The searches of the join.
    training
        From other rows of the same kind.
    setting
        In words.

    """

    trace: Trace
    training: Training
    setting: str

    def amri(self, options: TuningOptions) -> Replay:
        """Return the work of AMRI."""
        return replay(self.trace, BitAddressMethod(self.training, options))

    def static(self, options: TuningOptions) -> Replay:
        """Return the work of the bit-address index that AMRI begins with."""
        return replay(self.trace, BitAddressMethod(self.training, options, is_tuned=False))

    def hashes(self, count: int, schedule: Schedule | None) -> Replay:
        """Return the work of hash indices."""
        return replay(self.trace, HashMethod(self.training, count, schedule))


def make_case(
    bench: Bench,
    paths: Sequence[int] = (6, 6, 6, 6),
    explored_share: float = EXPLORED_SHARE,
    phase_rows: int = PHASE_ROWS,
    batch_rows: int = 250,
) -> Case:
    """Return the paper's set-up, with a number of paths for each stream."""
    phases = 12 if phase_rows == PHASE_ROWS else 4
    if bench.quick:
        phases, phase_rows = phases // 2, phase_rows // 10
    rows = phases * phase_rows
    traces = [
        trace_of(
            make_streams(bench.seed + extra, phases, paths, phase_rows),
            batch_rows,
            explored_share,
            bench.seed,
            phase_rows,
        )
        for extra in (0, 0 if max(paths) == 1 else 1)
    ]
    trace = traces[0]
    setting = (
        f"{4 * rows:,} tuples, {trace.requests / (4 * rows):.1f} searches and "
        f"{trace.results / (4 * rows):.1f} results each, phases of {phase_rows:,} of a stream"
    )
    return Case(trace, Training.of(traces[1]), setting)


def _paper_8(bits: int = BITS) -> TuningOptions:
    return TuningOptions.paper(0.05, 0.1, 60_000, 100_000, bits)


def paper_9(bits: int = BITS) -> TuningOptions:
    """Return the paper's tuning in figures 9 and 10."""
    return TuningOptions.paper(0.1, 0.15, 40_000, 80_000, bits)


def _hybrid() -> Schedule:
    return Hybrid.paper(40_000, 80_000)


def _compare(
    bench: Bench,
    figure: str,
    case: Case,
    runs: Mapping[str, Callable[[], Replay]],
    own: str,
    papers: Mapping[str, float | str | None],
) -> dict[str, Replay]:
    """Add the work per result of each rival over that of one's own."""
    replays = {}
    with bench.progress(figure, len(runs)) as advance:
        for name, run in runs.items():
            replays[name] = run()
            advance()
    for name, paper in papers.items():
        bench.add(
            f"{figure}: work per result, {name} / {own}",
            replays[name].per_result_ns / replays[own].per_result_ns,
            "x",
            f"{own}: {_work_in_words(replays[own])}; {name}: {_work_in_words(replays[name])}; "
            + case.setting,
            paper,
        )
    return replays


def _work_in_words(run: Replay) -> str:
    per_result = {
        name: count / max(run.results, 1) for name, count in dataclasses.asdict(run.work).items()
    }
    return (
        f"{run.per_result_ns / 1000:.1f} µs a result ({per_result['hashes']:.0f} hashes, "
        f"{per_result['made'] + per_result['deleted']:.1f} entries, "
        f"{per_result['visits']:.0f} ranges, {per_result['compared']:.0f} compared)"
    )


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
        name: functools.partial(case.amri, dataclasses.replace(_paper_8(), assessment=method))
        for name, method in methods.items()
    }
    papers = {"SRIA": 1.19, "DIA": 1.19, "CSRIA": 1.30, "CDIA random": None}
    _compare(bench, f"fig 8 a, {BITS} bits, hybrid 60,000/100,000", case, runs, "CDIA", papers)


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
        name: functools.partial(case.amri, dataclasses.replace(_paper_8(), schedule=schedule))
        for name, schedule in every.items()
    }
    papers = {"periodic": 1.65, "triggered": 1.29, "continuous": 1.18}
    _compare(bench, f"fig 8 b, {BITS} bits, CDIA", case, runs, "hybrid", papers)


def migrations(bench: Bench) -> None:
    """Fig 8 c: which migration, in the paper's phases and in longer ones."""
    for phase_rows in (PHASE_ROWS, LONG_PHASE_ROWS):
        case = make_case(bench, phase_rows=phase_rows)
        runs = {
            name: functools.partial(
                case.amri, dataclasses.replace(_paper_8(), migration=migration())
            )
            for name, migration in MIGRATIONS.items()
        }
        paper = 1.19 if phase_rows == PHASE_ROWS else None
        figure = f"fig 8 c, {BITS} bits, phases of {phase_rows:,}"
        _compare(bench, figure, case, runs, "nothing", {"all": paper, "partial": paper})


def hash_counts(bench: Bench) -> None:
    """Fig 9 a: how many adaptive hash indices."""
    case = make_case(bench)
    runs = {
        f"{count} hash indices": functools.partial(case.hashes, count, _hybrid())
        for count in range(1, 8)
    }
    papers: dict[str, float | str | None] = dict.fromkeys(list(runs)[:-1], "above 1")
    _compare(bench, "fig 9 a, adaptive", case, runs, "7 hash indices", papers)


def _rivals(case: Case, bits: int = BITS) -> dict[str, Callable[[], Replay]]:
    defaults = TuningOptions(bits=bits)
    return {
        "AMRI": lambda: case.amri(paper_9(bits)),
        "7 hash indices": lambda: case.hashes(7, _hybrid()),
        "static bitmap": lambda: case.static(paper_9(bits)),
        "AMRI, our tuning": lambda: case.amri(defaults),
        "static bitmap, our selection": lambda: case.static(defaults),
    }


def rivals(bench: Bench) -> None:
    """Fig 9 b: AMRI against the best hash indices, and a bitmap that stays."""
    for phase_rows in (PHASE_ROWS, LONG_PHASE_ROWS):
        case = make_case(bench, phase_rows=phase_rows)
        label = f"phases of {phase_rows:,}"
        papers: dict[str, float | str | None] = {"7 hash indices": 1.93, "static bitmap": 1.75}
        if phase_rows != PHASE_ROWS:
            papers = dict.fromkeys(papers)
        runs = _rivals(case)
        replays = _compare(bench, f"fig 9 b, {BITS} bits, {label}", case, runs, "AMRI", papers)
        _with_our_tuning(bench, f"fig 9 b, {BITS} bits, {label}", case, replays)


def _with_our_tuning(bench: Bench, figure: str, case: Case, runs: Mapping[str, Replay]) -> None:
    """Compare AMRI with the defaults of the engine, and with hash indices at another price."""
    own = runs["AMRI, our tuning"]
    for name in ("7 hash indices", "static bitmap, our selection", "AMRI"):
        bench.add(
            f"{figure}: work per result, {name} / AMRI, our tuning",
            runs[name].per_result_ns / own.per_result_ns,
            "x",
            f"AMRI, our tuning: {_work_in_words(own)}; {case.setting}",
        )
    hashes, amri = runs["7 hash indices"], runs["AMRI"]
    more_entries = hashes.work.made + hashes.work.deleted - amri.work.made - amri.work.deleted
    bench.add(
        f"{figure}: price of an index entry from which AMRI beats 7 hash indices",
        (amri.cost_ns - hashes.cost_ns) / more_entries,
        "ns more",
        "an entry of a sorted array costs 5 ns, one of a linked hash table some 100",
    )


def all_bits(bench: Bench) -> None:
    """Fig 9 b for other numbers of bits: work, memory, results in a second and until it is full."""
    case = make_case(bench)
    hashes = case.hashes(7, _hybrid())
    # Room for 7 hash indices over full windows, and a tenth more for rows that wait.
    memory_bytes = 1.1 * max(step.bytes for step in hashes.steps)
    bits_tried = ALL_BITS[:2] if bench.quick else ALL_BITS
    with bench.progress("fig 9 b, bits", len(bits_tried)) as advance:
        for bits in bits_tried:
            label = f"fig 9 b, {bits} bits"
            runs = {name: run() for name, run in _rivals(case, bits).items() if "hash" not in name}
            runs["7 hash indices"] = hashes
            own = runs["AMRI"]
            arrival_ns = 1.05 * own.cost_ns / sum(step.rows for step in own.steps)
            until_full = {
                name: run.results_until_full(arrival_ns, memory_bytes) for name, run in runs.items()
            }
            for name, run in runs.items():
                bench.add(
                    f"{label}: work per result, {name}",
                    run.per_result_ns / 1000,
                    "µs",
                    f"{_work_in_words(run)}; {case.setting}",
                )
                bench.add(f"{label}: index bytes a tuple, {name}", run.bytes_per_row, "bytes")
            for name, paper in (("7 hash indices", 1.93), ("static bitmap", 1.75)):
                bench.add(
                    f"{label}: results until memory is full, AMRI / {name}",
                    until_full["AMRI"] / max(until_full[name], 1),
                    "x",
                    f"tuples arrive every {arrival_ns:,.0f} ns, waiting ones take 64 bytes, room "
                    f"for {memory_bytes / 2**20:.1f} MiB; AMRI has {until_full['AMRI']:,}",
                    paper,
                )
            _per_second(bench, label, case, bits)
            advance()


def _per_second(bench: Bench, label: str, case: Case, bits: int) -> None:
    """Time the searches themselves, indexes and tuning included."""
    methods: dict[str, IndexMethod] = {
        "AMRI": BitAddressMethod(case.training, paper_9(bits)),
        "AMRI, our tuning": BitAddressMethod(case.training, TuningOptions(bits=bits)),
        "static bitmap": BitAddressMethod(case.training, paper_9(bits), is_tuned=False),
        "7 hash indices": HashMethod(case.training, 7, _hybrid()),
    }
    for name, method in methods.items():
        began = time.perf_counter()
        execute(case.trace, method)
        seconds = time.perf_counter() - began
        bench.add(f"{label}: results per second, {name}", case.trace.results / seconds, "a second")


def tuple_by_tuple(bench: Bench) -> None:
    """The same tuples one by one and in batches of 1,000: the same work a result, or nearly."""
    rows = 300 if bench.quick else 2_500
    runs = {}
    training = make_case(bench).training
    for batch_rows in (1, 250):
        streams = make_streams(bench.seed, 1, phase_rows=rows)
        trace = trace_of(streams, batch_rows, seed=bench.seed, phase_rows=rows)
        with bench.progress(f"batches of {4 * batch_rows}", 2) as advance:
            for name, method in (
                ("AMRI", BitAddressMethod(training, paper_9())),
                ("7 hash indices", HashMethod(training, 7, _hybrid())),
            ):
                runs[name, batch_rows] = replay(trace, method)
                advance()
    for name in ("AMRI", "7 hash indices"):
        bench.add(
            f"{name}: work per result, tuple by tuple / in batches of 1,000",
            runs[name, 1].per_result_ns / runs[name, 250].per_result_ns,
            "x",
            f"the first {rows:,} tuples of each stream only; results {runs[name, 1].results:,} "
            f"and {runs[name, 250].results:,}",
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
    replays = _compare(bench, figure, case, _rivals(case), "AMRI", papers)
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
                case.hashes, count, None if is_static else _hybrid()
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
        _compare(bench, figure, case, {**own, **runs}, "AMRI", papers)
