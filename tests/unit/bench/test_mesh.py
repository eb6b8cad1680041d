"""Parts of `eddyline bench mesh`: they run, and count what they promise."""

from __future__ import annotations

import pathlib

import numpy as np
import pandas as pd
import pytest

from eddyline.bench import mesh, mesh_searches
from eddyline.bench.harness import Bench, Result
from eddyline.bench.mesh_classes import results_over_work
from eddyline.bench.mesh_data import lab_streams, skewed, two_columns
from eddyline.bench.mesh_routing import Step, counted_variants, evaluations_a_row


def results_of(part: str, data: pathlib.Path | None = None) -> dict[str, Result]:
    bench = Bench("mesh", quick=True, rounds=1, only=part, data=data)
    mesh.run(bench)
    return {result.metric: result for result in bench.results}


def counted(data) -> dict[str, float]:
    return {name: evaluations_a_row(steps) for name, steps in counted_variants(data).items()}


def test_evaluations_are_counted_for_every_system() -> None:
    evaluations = counted(skewed(np.random.default_rng(0), 20_000))
    assert set(evaluations) == {
        "mesh",
        "single plan",
        "eddy, row by row",
        "eddy, batches of 100",
        "auto",
    }
    assert min(evaluations, key=evaluations.__getitem__) == "mesh"
    assert evaluations["single plan"] > 1.3 * evaluations["mesh"]


def test_a_mesh_needs_less_than_content_based_routing_where_two_columns_tell_classes() -> None:
    results = results_of("columns")
    evaluations = {metric.split("a row, ")[1]: r.value for metric, r in results.items()}
    assert len(evaluations) == 6
    assert evaluations["mesh"] < 1.35  # 1.15 is the least there can be
    for rival in (
        "eddy, row by row",
        "eddy, batches of 100",
        "Content-Learns, Eddyline's settings",
    ):
        assert evaluations[rival] > 1.25 * evaluations["mesh"]


def test_no_single_column_tells_the_four_kinds_apart() -> None:
    data = two_columns(np.random.default_rng(0), 40_000)
    first = data.attributes["a1"].to_numpy() < 0.5
    second = np.array(data.attributes["a3"].to_pylist()) == "x"
    for column in (first, second):
        for side in (column, ~column):
            rates = np.sort(data.passed[side].mean(axis=0))
            assert rates[:2] == pytest.approx([0.525, 0.525], abs=0.02)
    assert data.passed[first & second].mean(axis=0).min() == pytest.approx(0.1, abs=0.02)


def test_searches_are_timed_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    stop = mesh_searches.Stop

    def noted(*given, **more):
        limits.append(more.get("seconds_max"))
        return stop(*given, **more)

    monkeypatch.setattr(mesh_searches, "Stop", noted)
    results = results_of("training")
    assert set(limits) == {None}
    explored = [r.value for metric, r in results.items() if "meshes whose cost" in metric]
    assert len(explored) == 4
    assert explored[-1] > explored[1]  # more training tuples, more meshes


def test_starts_are_compared_by_output_rate() -> None:
    results = results_of("starts")
    assert len(results) == 8
    assert all("output rate" in metric for metric in results)
    by_work = {m: r for m, r in results.items() if "by work" in m}
    assert {r.paper for r in by_work.values()} == {"1.10", "1.12", "1.19", "1.06"}
    assert len({r.value for r in by_work.values()}) > 1


@pytest.fixture
def lab_folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Write readings of twelve motes in six places, a minute apart, cold in one corner."""
    rng = np.random.default_rng(0)
    places = [(mote, 10 * (mote // 4), 10 * (mote % 2)) for mote in range(12)]
    (tmp_path / "mote_locs.txt").write_text("".join(f"{m} {x} {y}\n" for m, x, y in places))
    lines = []
    for minute in range(300):
        for mote in range(12):
            degrees = 20 + rng.integers(0, 3) / 5
            clock = f"{minute // 60:02d}:{minute % 60:02d}:{mote * 4:02d}.5"
            lines.append(f"2004-03-04 {clock} {minute} {mote} {degrees} 40 100 2.5\n")
    (tmp_path / "data.txt").write_text("".join(lines))
    return tmp_path


def test_the_lab_is_divided_by_place_and_joined_by_time(lab_folder: pathlib.Path) -> None:
    results = results_of("lab", lab_folder)
    assert sum("evaluations a row" in metric for metric in results) == 6
    assert sum("of the work, mesh /" in metric for metric in results) == 9
    assert all(result.value > 0 for result in results.values())


def test_a_partner_has_the_same_temperature_within_the_window_before() -> None:
    places = pd.DataFrame({"mote_id": range(6), "x": [0, 0, 1, 1, 2, 2], "y": [0, 1] * 3})
    readings = [(0, 0, 20.0), (1, 30, 20.0), (2, 59, 20.0), (3, 70, 25.0), (4, 80, 20.0)]
    lab = pd.DataFrame(
        [
            {
                "date": "2004-03-04",
                "time": f"00:{second // 60:02d}:{second % 60:02d}",
                "mote_id": mote,
                "temperature": degrees,
                "hour": 0,
                "humidity": 1.0,
                "light": 1.0,
                "voltage": 2.0,
            }
            for mote, second, degrees in [*readings, (5, 200, 20.0)]
        ]
    )
    streams = lab_streams(lab, places, window_s=60.0)
    partners = [stream.passed[0].tolist() for stream in streams]  # one reading a part
    assert partners[0] == [False] * 5
    assert partners[1] == [True, False, False, False, False]
    assert partners[2] == [True, True, False, False, False]
    assert partners[3] == [False] * 5
    assert partners[4] == [False, True, True, False, False]  # the first was 80 s ago
    assert partners[5] == [False] * 5


def test_results_are_compared_after_the_same_evaluations() -> None:
    def steps(evaluations: int) -> list[Step]:
        return [Step(rows, evaluations * rows, rows // 10) for rows in (0, 50, 100)]

    bench = Bench("own")
    eddies = {"eddy, row by row": [steps(3)], "eddy, batches of 100": [steps(1)]}
    results_over_work(bench, "fig 0", {"mesh": [steps(1)], "single plan": [steps(2)], **eddies})
    assert [(r.metric.split(": ")[1], r.value) for r in bench.results[3:6]] == [
        ("results after 50% of the work, mesh / single plan", pytest.approx(2.0)),
        ("results after 50% of the work, mesh / eddy, row by row", pytest.approx(3.0)),
        ("results after 50% of the work, mesh / eddy, batches of 100", pytest.approx(1.0)),
    ]
    assert bench.results[3].baseline.startswith("5 results")


def test_learning_an_order_costs_little_where_classes_cannot_pay() -> None:
    results = results_of("dependent")
    assert len(results) == 5 * 3 * 3
    for metric, result in results.items():
        at_least = 0.9 if metric.startswith("classes") else 1.0
        assert at_least < result.value < 1.1, metric
