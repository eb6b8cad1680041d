"""Figures 16 to 18 of the A-Greedy paper: evaluations over time, while the selectivities change."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

import numpy as np

from eddyline.arrays import BoolArray, FloatArray
from eddyline.bench.agreedy_runs import (
    CHUNK_ROWS,
    SELECTIVITIES,
    MakeSubject,
    Subject,
    optimum_of,
    permuted_phases,
)
from eddyline.bench.harness import Bench

#: Rows after the change at which the timeline is read.
MARKS = (0, 2_000, 10_000, 20_000, 50_000, 100_000, 200_000, 400_000)


def timelines(
    bench: Bench, subjects: Mapping[str, MakeSubject], rows: int, seeds: int
) -> dict[str, float]:
    """Note evaluations for every 2,000 rows, from before a change to long after it.

    Returned are the evaluations of each subject in the last fifth of both phases, once it has
    settled, as a multiple of the optimum: those that its order needs, without those to learn.
    """
    cost = np.ones(len(SELECTIVITIES))
    marks = [mark for mark in MARKS if mark < rows]
    settled: dict[str, list[float]] = {name: [] for name in subjects}
    lines: dict[str, list[FloatArray]] = {name: [] for name in subjects}
    optimum: list[float] = []
    with bench.progress("figs 16-18: timelines", seeds * len(subjects)) as advance:
        for seed in range(bench.seed, bench.seed + seeds):
            phases = permuted_phases(np.random.default_rng(seed), 2, rows)
            best = [CHUNK_ROWS * optimum_of(phase, cost) for phase in phases]
            optimum.append(best[1])
            answers = np.concatenate(phases)
            for name, make in subjects.items():
                regular, profiled = _timeline(make(cost, seed), answers)
                last = rows // CHUNK_ROWS // 5
                before, after = regular[: rows // CHUNK_ROWS], regular[rows // CHUNK_ROWS :]
                ends = before[-last:].mean() / best[0], after[-last:].mean() / best[1]
                settled[name].append(float(np.mean(ends)))
                lines[name].append(regular + profiled)
                advance()
    for name in subjects:
        line = np.median(lines[name], axis=0)
        change = rows // CHUNK_ROWS
        shown = [f"{mark:,}: {line[change + mark // CHUNK_ROWS]:,.0f}" for mark in marks]
        bench.add(
            f"figs 16-18: evaluations for every 2,000 rows in the 100,000 after a change, {name}",
            float(line[change : change + 100_000 // CHUNK_ROWS].mean()),
            "evaluations",
            f"optimum {statistics.median(optimum):,.0f}; before the change "
            f"{line[change - 1]:,.0f}; after so many rows: {'; '.join(shown)}; median of "
            f"{seeds} runs",
        )
    return {name: statistics.median(values) for name, values in settled.items()}


def _timeline(subject: Subject, answers: BoolArray) -> FloatArray:
    """Return the evaluations of every 2,000 rows: regular ones, and those to learn."""
    counts = np.zeros((2, len(answers) // CHUNK_ROWS))
    end = 0
    while end < len(answers):
        begin = end
        end += subject.rows_next(begin)
        part = answers[begin:end]
        spent = np.array(subject.feed(part)) / len(part)
        # Rows that were taken at once may lie in several parts of the timeline.
        places = np.arange(begin, begin + len(part)) // CHUNK_ROWS
        counts += spent[:, None] * np.bincount(places, minlength=counts.shape[1])
    return counts
