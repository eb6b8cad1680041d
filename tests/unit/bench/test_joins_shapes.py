"""Shapes of joins: about as many results for each, whatever the equalities."""

from __future__ import annotations

import functools
import pathlib

import pandas as pd
import pytest

from eddyline.bench.joins_shapes import BATCHES, WINDOW_MS, Shape, shapes_of

SHAPES = {shape.name: shape for shape in shapes_of(200, 200)}


def count_results(shape: Shape, folder: pathlib.Path) -> int:
    """Return the number of results of all micro-batches."""
    shape.write(folder, seed=1)
    frames = [
        pd.read_parquet(folder / f"stream{n}").rename(columns={"v": f"v{n}", "ts": f"ts{n}"})
        for n in range(shape.streams)
    ]
    times = [f"ts{n}" for n in range(shape.streams)]

    def join(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
        both = one.merge(other)  # by all keys that have the same name
        seen = [name for name in times if name in both.columns]
        spread = both[seen].max(axis=1) - both[seen].min(axis=1)
        return both[spread < pd.Timedelta(milliseconds=WINDOW_MS)]

    return len(functools.reduce(join, frames))


@pytest.mark.parametrize(
    "name", ["2 streams, one key", "4 streams, one key", "star of 4", "cycle of 4", "clique of 4"]
)
def test_shapes_have_about_as_many_results(name: str, tmp_path: pathlib.Path) -> None:
    shape = SHAPES[name]
    # A window is as long as a micro-batch; n streams have n times as many combinations in it as
    # streams whose rows all came at once.
    expected = shape.rows * shape.streams * BATCHES
    assert 0.5 * expected < count_results(shape, tmp_path) < 1.5 * expected


def test_all_shapes_are_there() -> None:
    assert [shape.equalities for shape in SHAPES.values()] == [1, 2, 3, 5, 9, 3, 3, 4, 6]
    assert len(SHAPES["cycle of 4"].case().equal) == 4
    assert len(SHAPES["clique of 4"].case().equal) == 6
