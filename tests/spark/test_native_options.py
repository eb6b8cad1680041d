"""Options of the search for a mesh over native conditions: what is given is what is used."""

from __future__ import annotations

import dataclasses

import pytest
from pyspark.sql import functions as F

import eddyline as el
from eddyline.journal.events import ClassesFound, NativeReordered
from eddyline.mesh import Mesh, Overheads
from eddyline.mesh.routes import ROUTE_FINDERS
from eddyline.spark.native import clocked
from eddyline.spark.native import run as native_run
from eddyline.spark.native.columns import mesh_to_column
from eddyline.spark.native.timing import TimedConditions, TimedTrial
from tests.spark.test_native import UNLIKE, fake_trial

EXPENSIVE = Overheads(test_us=0.0, route_us=100.0)  # a condition costs 1 us: no classes pay


@pytest.fixture(scope="module")
def table(spark):
    rows = spark.range(12_000).selectExpr("id", "cast(id % 3 as int) c", "concat('t', id) text")
    return rows.repartition(2).cache()


def options(**given) -> el.MeshOptions:
    return el.MeshOptions(planning_s_max=None, **given)


def test_given_overheads_are_not_replaced_by_those_of_spark(table, monkeypatch) -> None:
    fake_trial(monkeypatch, written=3.0, order=2.0, classes=1.0)
    f = el.where(*UNLIKE, policy=options(), seed=0)
    table.transform(f)
    assert f.journal().of(ClassesFound)
    g = el.where(*UNLIKE, policy=options(overheads=EXPENSIVE), seed=0)
    table.transform(g)
    assert not g.journal().of(ClassesFound)


def test_the_given_way_to_find_routes_orders_the_conditions(table, monkeypatch) -> None:
    fake_trial(monkeypatch, written=3.0, order=2.0)
    monkeypatch.setitem(ROUTE_FINDERS, "rank", lambda drops, cost_us: (2, 0, 1))
    f = el.where(*UNLIKE, policy=options(routes="rank", overheads=EXPENSIVE), seed=0)
    filtered = table.transform(f)
    (change,) = f.journal().of(NativeReordered)
    assert change.event.after == tuple(change.event.before[n] for n in (2, 0, 1))
    assert filtered.count() == table.filter(" AND ".join(UNLIKE)).count()


def test_uncertain_steps_are_settled_and_said(table, monkeypatch) -> None:
    fake_trial(monkeypatch, written=3.0, order=2.0, classes=1.0)
    learn, meshes = native_run.learn_native, []

    def uncertain(*given, **more):
        lesson = learn(*given, **more)
        mesh = lesson.result.mesh
        first, *others = mesh.classes
        flat = first.route if all(isinstance(s, int) for s in first.route) else (0, 1, 2)
        classes = (dataclasses.replace(first, route=(flat[0], (flat[1], flat[2]))), *others)
        meshes.append(dataclasses.replace(mesh, classes=classes))
        return dataclasses.replace(
            lesson, result=dataclasses.replace(lesson.result, mesh=meshes[0])
        )

    monkeypatch.setattr(native_run, "learn_native", uncertain)
    f = el.where(*UNLIKE, policy=options(), seed=0)
    filtered = table.transform(f)
    (found,) = f.journal().of(ClassesFound)
    assert found.event.settled
    assert all("|" in step for step in found.event.settled)
    assert not any("|" in words for words in found.event.classes)
    assert "order fixed where it made no difference" in found.event.sentence()
    assert filtered.count() == table.filter(" AND ".join(UNLIKE)).count()
    with pytest.raises(ValueError, match="uncertain steps"):
        compile_mesh(meshes[0])


def compile_mesh(mesh: Mesh) -> None:
    conditions = [F.expr(text) for text in UNLIKE]
    mesh_to_column(mesh, conditions, {name: F.col(name) for name in mesh.tree.attributes}, (0, 1))


def count_timings(monkeypatch) -> list[int]:
    """Return a list that gets an entry whenever conditions are timed by themselves."""
    timings: list[int] = []

    def costs(sample, conditions, rows, budget=None):
        timings.append(rows)
        return TimedConditions((1.0,) * len(conditions), True)

    monkeypatch.setattr(native_run, "time_conditions", costs)
    return timings


def refuse_clocks(monkeypatch) -> None:
    """Some platforms do not allow to call methods of Java."""
    monkeypatch.setattr(clocked, "_clock", lambda name: F.expr("reflect('no.such.Clock', 'now')"))


@pytest.mark.parametrize(("classes_s", "times"), [(1.0, 0), (2.9, 1)])
def test_a_clear_gain_needs_no_timing_of_single_conditions(
    table, monkeypatch, classes_s: float, times: int
) -> None:
    fake_trial(monkeypatch, written=3.0, order=3.0, classes=classes_s)
    refuse_clocks(monkeypatch)
    timings = count_timings(monkeypatch)
    f = el.where(*UNLIKE, policy=el.MeshOptions(planning_s_max=60.0), seed=0)
    filtered = table.transform(f)
    assert len(timings) == times
    assert f.report().classes
    assert filtered.count() == table.filter(" AND ".join(UNLIKE)).count()


def test_an_order_is_used_without_a_trial_only_if_conditions_were_timed(table, monkeypatch) -> None:
    def no_trial(sample, rows, ways, expected_us, budget, gain_min):
        return TimedTrial(rows, dict.fromkeys(ways, float("inf")))

    refuse_clocks(monkeypatch)
    monkeypatch.setattr(native_run, "time_ways", no_trial)
    last_is_cheap = TimedConditions((100.0, 100.0, 0.1), True)
    for is_complete, changes in ((True, 1), (False, 0)):
        timed = dataclasses.replace(last_is_cheap, is_complete=is_complete)
        monkeypatch.setattr(native_run, "time_conditions", lambda *_, timed=timed: timed)
        f = el.where(*UNLIKE, policy=el.MeshOptions(planning_s_max=60.0), seed=0)
        table.transform(f)
        assert len(f.journal().of(NativeReordered)) == changes
        assert not f.report().classes
