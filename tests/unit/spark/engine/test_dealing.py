"""Partners meet in exactly one task, and rows are copied no more than is worth it."""

from __future__ import annotations

import itertools
import random

import pytest
from pyspark.sql.types import LongType

from eddyline.spark.engine.compiled_join import CompiledJoin, RoleKey
from eddyline.spark.engine.dealing import Axis, copies, deal, first_tasks
from eddyline.spark.engine.join_key import JoinKey


def key(name: str) -> JoinKey:
    return JoinKey(name, LongType())


def join(streams: int, *equal: str) -> CompiledJoin:
    """Return a join; `"01"` says that roles 0 and 1 have a common key."""
    equalities = tuple(
        frozenset(RoleKey(int(role), key(f"k{number}")) for role in roles)
        for number, roles in enumerate(equal)
    )
    nothing = (None,) * streams
    return CompiledJoin((None,) * streams, equalities, nothing, nothing, (), ())  # type: ignore[arg-type]


def tasks_of(axes: tuple[Axis, ...], values: dict[str, int], own: int) -> list[int]:
    """Return the tasks of a row, as Spark computes them."""
    task = 0
    for axis in axes:
        value = values[axis.key.text] if axis.key else own
        task = task * axis.share + (0 if axis.is_copied else value % axis.share)
    return [task + copy for copy in copies(axes)]


@pytest.mark.parametrize("tasks", [1, 2, 4, 6, 16])
@pytest.mark.parametrize(
    ("streams", "equal"),
    [
        (3, ("012",)),
        (3, ("01", "12")),
        (3, ("01", "12", "02")),
        (4, ("01", "12", "23")),
        (4, ("0123", "01")),
        (2, ()),
        (5, ("01", "02", "03", "04")),
    ],
)
def test_a_combination_meets_in_exactly_one_task(
    tasks: int, streams: int, equal: tuple[str, ...]
) -> None:
    dealing = deal(join(streams, *equal), tasks)
    rng = random.Random(1)
    for _ in range(50):
        values = {f"k{number}": rng.randrange(100) for number in range(len(equal))}
        met = [set(tasks_of(axes, values, rng.randrange(100))) for axes in dealing.roles]
        assert len(set.intersection(*met)) == 1
        assert set.union(*met) <= set(range(tasks))


@pytest.mark.parametrize(
    ("streams", "equal", "tasks", "gain"),
    [
        (3, ("012",), 8, 8.0),  # a common key: every row in one task
        (3, ("01", "12"), 2, 1.5),  # the third stream goes to both tasks
        (3, ("01", "12", "02"), 8, 4.0),  # a triangle: 2 x 2 x 2, every row in two cells
        (4, ("01", "12", "23"), 2, 4 / 3),  # not worth it
        (2, (), 4, 2.0),  # 2 x 2 of both streams
    ],
)
def test_the_gain_over_one_task(
    streams: int, equal: tuple[str, ...], tasks: int, gain: float
) -> None:
    dealing = deal(join(streams, *equal), tasks)
    assert dealing.gain == pytest.approx(gain)
    assert any(dealing.roles) == (gain >= 1.5)


def test_a_row_has_one_first_copy() -> None:
    axes = (Axis(2), Axis(3, key("k")), Axis(2))
    first = first_tasks(axes)
    assert first is not None
    for place in range(3):
        tasks = tasks_of(axes, {"k": place}, 0)
        assert len(tasks) == 4
        assert len(first & set(tasks)) == 1


def test_shares_are_the_best_of_all() -> None:
    """Against every choice of shares for a chain of four streams."""
    dealing = deal(join(4, "01", "12", "23"), 6)
    loads = []
    for shares in itertools.product(range(1, 7), repeat=3):
        if shares[0] * shares[1] * shares[2] <= 6:
            x, y, z = shares
            loads.append(1 / x + 1 / (x * y) + 1 / (y * z) + 1 / z)
    assert dealing.gain >= 4 / min(loads) - 1e-9
