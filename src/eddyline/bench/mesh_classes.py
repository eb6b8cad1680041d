"""Query Mesh beside content-based routing, counted: classes by two columns, and the Lab data.

An eddy with content-based routing decides for each operator by one column; a mesh tells classes
apart by several. Both run over the same rows.

The paper's second real dataset, stock prices with news, blogs and exchange rates, was collected by
its authors from feeds and never published, so that figure is left out.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, sections 2, 6.1 and 6.2.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.bench import lab as lab_data
from eddyline.bench.harness import Bench
from eddyline.bench.mesh_data import lab_streams, two_columns
from eddyline.bench.mesh_routing import (
    Step,
    count_mesh,
    count_routed,
    counted_variants,
    evaluations_a_row,
    make_router,
)
from eddyline.content import ContentOptions
from eddyline.mesh import MeshOptions

LAB_WINDOW_S = 60.0


def by_two_columns(bench: Bench) -> None:
    """Count evaluations where classes are told apart by two columns together."""
    rows = 30_000 if bench.quick else 400_000
    data = two_columns(np.random.default_rng(bench.seed), rows)
    costs_us = (1.0,) * data.passed.shape[1]
    learns = make_router(data, ContentOptions(), costs_us=costs_us)
    variants = {
        **counted_variants(data),
        "Content-Learns, Eddyline's settings": count_routed(data, learns),
    }
    counted = {name: evaluations_a_row(steps) for name, steps in variants.items()}
    for name, evaluations in counted.items():
        bench.add(
            f"classes by two columns: evaluations a row, {name}",
            evaluations,
            "evaluations",
            f"{evaluations / counted['mesh']:.2f} times those of the mesh; {rows:,} rows",
        )


def lab(bench: Bench, folder: pathlib.Path) -> None:
    """Count the results that the same work produces on the Lab data (figure 11 b).

    Each reading probes, for every other part of the lab, the readings of the last minute for one
    of the same temperature, to half a degree. A result is a reading that has a partner in every
    part. (The paper does not give its query.)
    """
    readings = lab_data.read_lab(folder)
    streams = lab_streams(readings, lab_data.read_places(folder), LAB_WINDOW_S)
    if bench.quick:
        streams = [stream.until(10_000) for stream in streams]
    made: dict[str, list[list[Step]]] = {}
    with bench.progress("fig 11 b: Lab data", len(streams)) as advance:
        for stream in streams:
            variants = {
                **counted_variants(stream),
                "mesh, the paper's parameters": count_mesh(stream, MeshOptions.paper()),
            }
            for name, steps in variants.items():
                made.setdefault(name, []).append([Step(0, 0, 0), *steps])
            advance()
    rows = sum(len(stream.passed) for stream in streams)
    for name, own in made.items():
        learning = sum(steps[-1].learning for steps in own)
        bench.add(
            f"fig 11 b: Lab data, {len(streams)} streams: evaluations a row, {name}",
            _all_evaluations(own) / rows,
            "evaluations",
            (f"{learning / rows:.3f} of them only to learn; " if learning else "")
            + f"{rows:,} readings",
        )
    results_over_work(bench, "fig 11 b: Lab data", made)


def results_over_work(
    bench: Bench, label: str, made: Mapping[str, Sequence[Sequence[Step]]]
) -> None:
    """Note the results that the same evaluations lead to (figure 11).

    Parameters
    ----------
    bench, label
        Where it goes, and what it is called.
    made
        For each system the steps of each stream.
    """
    whole = min(_all_evaluations(own) for own in made.values())
    for share in (0.25, 0.5, 1.0):
        results = {name: _results_after(own, share * whole) for name, own in made.items()}
        for rival in ("single plan", "eddy, row by row", "eddy, batches of 100"):
            bench.add(
                f"{label}: results after {share:.0%} of the work, mesh / {rival}",
                results["mesh"] / max(results[rival], 1.0),
                "x",
                f"{results['mesh']:,.0f} results; work is counted in evaluations",
                "larger" if share == 1.0 else None,
            )


def _all_evaluations(streams: Sequence[Sequence[Step]]) -> int:
    return sum(steps[-1].evaluations for steps in streams)


def _results_after(streams: Sequence[Sequence[Step]], evaluations: float) -> float:
    """Return the results after some evaluations, if all streams advance at the same pace."""
    shares = np.linspace(0.0, 1.0, 1_001)
    work, results = np.zeros_like(shares), np.zeros_like(shares)
    for steps in streams:
        rows, spent, kept, _ = np.array(steps, dtype=float).T
        work += np.interp(shares * rows[-1], rows, spent)
        results += np.interp(shares * rows[-1], rows, kept)
    return float(np.interp(evaluations, work, results))
