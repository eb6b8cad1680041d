"""A join of four streams with its searches, and the index methods that are compared on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from eddyline.bench.amri_data import PHASE_ROWS, make_streams
from eddyline.bench.amri_methods import BitAddressMethod, HashMethod, Training
from eddyline.bench.amri_trace import EXPLORED_SHARE, Trace, trace_of
from eddyline.bench.amri_work import Replay, replay
from eddyline.bench.harness import Bench
from eddyline.index.schedules import Hybrid, Schedule
from eddyline.index.tuning_options import TuningOptions

#: Bits of a bucket id: as many as 2,500 rows fill.
BITS = 11


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
        f"{trace.results / (4 * rows):.1f} results each, phases of {phase_rows:,} of a stream; "
        f"path: the order of the generator, {explored_share:.0%} of the tuples take others"
    )
    return Case(trace, Training.of(traces[1]), setting)


def paper_8(bits: int = BITS) -> TuningOptions:
    """Return the paper's tuning in figure 8."""
    return TuningOptions.paper(0.05, 0.1, 60_000, 100_000, bits)


def paper_9(bits: int = BITS) -> TuningOptions:
    """Return the paper's tuning in figures 9 and 10."""
    return TuningOptions.paper(0.1, 0.15, 40_000, 80_000, bits)


def hybrid() -> Schedule:
    """Return the paper's schedule in figures 9 and 10."""
    return Hybrid.paper(40_000, 80_000)


def rivals_of(case: Case, bits: int = BITS) -> dict[str, Callable[[], Replay]]:
    """Return the methods of figure 9 b, by name."""
    defaults = TuningOptions(bits=bits)
    return {
        "AMRI": lambda: case.amri(paper_9(bits)),
        "7 hash indices": lambda: case.hashes(7, hybrid()),
        "static bitmap": lambda: case.static(paper_9(bits)),
        "AMRI, our tuning": lambda: case.amri(defaults),
        "static bitmap, our selection": lambda: case.static(defaults),
    }


def compare(
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
            f"{own}: {work_in_words(replays[own])}; {name}: {work_in_words(replays[name])}; "
            + case.setting,
            paper,
        )
    return replays


def work_in_words(run: Replay) -> str:
    """Return the work per result in words."""
    per_result = {
        name: count / max(run.results, 1) for name, count in dataclasses.asdict(run.work).items()
    }
    return (
        f"{run.per_result_ns / 1000:.1f} µs a result ({per_result['hashes']:.0f} hashes, "
        f"{per_result['made'] + per_result['deleted']:.1f} entries, "
        f"{per_result['visits']:.0f} ranges, {per_result['compared']:.0f} compared)"
    )
