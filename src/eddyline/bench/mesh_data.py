"""Rows of the experiments of the paper on Query Mesh: skewed, uniform, and of a real lab.

On skewed data there are three kinds of rows, told apart by an attribute with a Poisson
distribution, and each kind has another best order; on uniform data there is one kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.testing.synthetic import to_columns

OPERATORS = 6
KINDS = 3
LAB_ATTRIBUTES = ("mote_id", "hour", "temperature", "humidity", "light", "voltage")
LAB_DEGREES = 0.5  # temperatures are rounded to this


@dataclass
class Data:
    """Rows: which operator lets them pass, and their attributes."""

    passed: BoolArray
    attributes: dict[str, pa.Array]

    @property
    def columns(self) -> list[pa.Array]:
        """The answers of the operators, then the attributes."""
        return [*to_columns(self.passed), *self.attributes.values()]

    def after(self, rows: int) -> Data:
        """Return the rows after the first ones."""
        later = {name: values.slice(rows) for name, values in self.attributes.items()}
        return Data(self.passed[rows:], later)

    def until(self, rows: int) -> Data:
        """Return the first rows."""
        first = {name: values.slice(0, rows) for name, values in self.attributes.items()}
        return Data(self.passed[:rows], first)


def attributes(rng: np.random.Generator, telling: np.ndarray) -> dict[str, pa.Array]:
    """Return attributes of rows, of which only the first tells anything."""
    rows = len(telling)
    return {
        "a0": pa.array(telling),
        "a1": pa.array(rng.random(rows)),
        "a2": pa.array(rng.integers(0, 50, rows)),
        "a3": pa.array(rng.choice(["x", "y", "z"], rows)),
        "a4": pa.array(np.arange(rows)),
        "a5": pa.array(rng.random(rows) < 0.5),
    }


def skewed(rng: np.random.Generator, rows: int, operators: int = OPERATORS) -> Data:
    """Three kinds of rows; each is dropped by two operators of its own, and by hardly any other."""
    telling = rng.poisson(1.0, rows)
    kinds = np.minimum(telling, KINDS - 1)
    selectivity = np.full((KINDS, operators), 0.95)
    for kind in range(KINDS):
        selectivity[kind, [2 * kind, 2 * kind + 1]] = [0.1, 0.4]
    passed = rng.random((rows, operators)) < selectivity[kinds]
    return Data(passed, attributes(rng, telling))


def uniform(rng: np.random.Generator, rows: int, operators: int = OPERATORS) -> Data:
    """One kind of rows."""
    telling = rng.integers(0, 101, rows)
    passed = rng.random((rows, operators)) < np.resize([0.9, 0.3, 0.8, 0.5, 0.7, 0.6], operators)
    return Data(passed, attributes(rng, telling))


def many_kinds(rng: np.random.Generator, rows: int, kinds: int = 12) -> tuple[Data, FloatArray]:
    """Return rows of many kinds for the searches to divide, and what each operator costs."""
    selectivity = rng.uniform(0.05, 0.95, (kinds, OPERATORS))
    cost_us = rng.uniform(5, 20, OPERATORS)
    kind = np.minimum(rng.poisson(4.0, rows), kinds - 1)
    passed = rng.random((rows, OPERATORS)) < selectivity[kind]
    return Data(passed, attributes(rng, kind)), cost_us


def two_columns(rng: np.random.Generator, rows: int) -> Data:
    """Return four kinds of rows that it takes two columns to tell apart.

    A kind is a quarter of the plane of two columns, and each is dropped by an operator of its own.
    One column alone tells pairs of kinds apart.
    """
    first, second = rng.random(rows), rng.choice(["x", "y"], rows)
    kinds = 2 * (first < 0.5) + (second == "x")
    selectivity = np.full((4, 4), 0.95)
    np.fill_diagonal(selectivity, 0.1)
    passed = rng.random((rows, 4)) < selectivity[kinds]
    columns = attributes(rng, rng.poisson(1.0, rows))
    return Data(passed, columns | {"a1": pa.array(first), "a3": pa.array(second)})


def lab_streams(lab: pd.DataFrame, places: pd.DataFrame, window_s: float) -> list[Data]:
    """Return the readings of each part of the lab; operators are windows over the other parts.

    The lab is divided into three parts along its length and two along its width, with about as many
    sensors each. An operator lets a reading pass that has a partner: one of the same temperature
    in the other part, taken within the window before it.

    Parameters
    ----------
    lab
        Readings in the order they were taken.
    places
        Where each mote is: `mote_id`, `x` and `y`.
    window_s
        Length of the windows.

    """
    parts = 2 * pd.qcut(places.x, 3, labels=False) + pd.qcut(places.y, 2, labels=False)
    part = lab.mote_id.map(dict(zip(places.mote_id, parts, strict=True))).fillna(-1).to_numpy()
    when = pd.to_datetime(lab.date + " " + lab.time, format="mixed")
    times_us = when.astype("datetime64[us]").astype(np.int64).to_numpy()
    times_us = times_us - times_us.min()
    keys = np.round(lab.temperature.to_numpy() / LAB_DEGREES).astype(np.int64)
    numbers = sorted(set(parts.tolist()))
    streams = []
    for own in numbers:
        rows = np.flatnonzero(part == own)
        others = [np.flatnonzero(part == other) for other in numbers if other != own]
        passed = np.stack(
            [
                _has_partner(
                    keys[rows], times_us[rows], keys[other], times_us[other], int(1e6 * window_s)
                )
                for other in others
            ],
            axis=1,
        )
        columns = {name: pa.array(lab[name].to_numpy()[rows]) for name in LAB_ATTRIBUTES}
        streams.append(Data(passed, columns))
    return streams


def _has_partner(
    keys: IntArray,
    times_us: IntArray,
    stored_keys: IntArray,
    stored_times_us: IntArray,
    window_us: int,
) -> BoolArray:
    """Return for each reading whether one with its key was stored within the window before it."""
    span_us = 2 * (int(max(times_us.max(), stored_times_us.max())) + window_us)
    stored = np.sort(stored_keys * span_us + stored_times_us)
    probed = keys * span_us + times_us
    newest = np.searchsorted(stored, probed) - 1
    return np.asarray((newest >= 0) & (stored[np.maximum(newest, 0)] > probed - window_us))
