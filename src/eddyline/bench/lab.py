"""The Lab data: readings of sensors in an office, and range queries over them."""

from __future__ import annotations

import pathlib

import numpy as np
import pandas as pd

from eddyline.errors import EddylineError

READINGS = ("light", "temperature", "humidity", "voltage")
ATTRIBUTES = ("mote_id", "hour", "minute", "second", "day")
_COLUMNS = ["date", "time", "epoch", "mote_id", "temperature", "humidity", "light", "voltage"]


def read_lab(folder: pathlib.Path) -> pd.DataFrame:
    """Return the readings in the order they were taken, without impossible ones."""
    base = _base(folder)
    paths = [p for p in sorted(base.iterdir()) if p.is_file() and p.name.startswith("data")]
    if not paths:
        raise EddylineError(
            f"no file named data* in {base}; --data takes the folder that holds the Lab readings"
        )
    parts = [pd.read_csv(path, sep=" ", header=None, names=_COLUMNS, engine="c") for path in paths]
    lab = pd.concat(parts).dropna()
    possible = lab.humidity.between(0, 100) & lab.temperature.between(-20, 60) & (lab.light >= 0)
    lab = lab[possible & lab.voltage.between(1.5, 3.5)].copy()
    when = pd.to_datetime(lab.date + " " + lab.time, format="mixed")
    lab["day"], lab["hour"] = when.dt.day, when.dt.hour
    lab["minute"], lab["second"] = when.dt.minute, when.dt.second
    lab["mote_id"] = lab.mote_id.astype(np.int64)
    return lab.iloc[np.argsort(when.to_numpy(), kind="stable")].reset_index(drop=True)


def read_places(folder: pathlib.Path) -> pd.DataFrame:
    """Return where each mote is, in metres: columns `mote_id`, `x` and `y`."""
    path = _base(folder) / "mote_locs.txt"
    if not path.is_file():
        raise EddylineError(f"no file named {path.name} in {path.parent}: the places of the motes")
    return pd.read_csv(path, sep=" ", header=None, names=["mote_id", "x", "y"])


def _base(folder: pathlib.Path) -> pathlib.Path:
    nested = folder / "intel_lab"
    return nested if nested.is_dir() else folder


def random_query(rng: np.random.Generator, lab: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Return the ranges of a query like Q2: bounds from the outer quarters of each domain."""
    ranges = {}
    for reading in READINGS:
        least, greatest = float(lab[reading].min()), float(lab[reading].max())
        quarter = (greatest - least) / 4
        ranges[reading] = (
            float(rng.uniform(least, least + quarter)),
            float(rng.uniform(greatest - quarter, greatest)),
        )
    return ranges


def answers_of(lab: pd.DataFrame, ranges: dict[str, tuple[float, float]]) -> np.ndarray:
    """Return which readings satisfy which range, a column for each."""
    return np.stack(
        [lab[reading].between(*ranges[reading]).to_numpy() for reading in READINGS], axis=1
    )
