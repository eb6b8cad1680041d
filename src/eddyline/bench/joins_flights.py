"""Real flights joined with weather and planes, by an engine and by Spark's own joins.

The weather of the hour in which a flight is to depart at its airport, and the plane, which was
announced with its first flight and is kept for good: a window of 400 days.
"""

from __future__ import annotations

import pathlib
import tempfile

from eddyline.bench.flights_data import cut_by_time, read_flights
from eddyline.bench.harness import Bench, local_spark
from eddyline.bench.joins_case import JoinCase, Side, Streams
from eddyline.bench.joins_runs import Contest
from eddyline.bench.joins_versus import contend

BATCHES = 6
HOUR_MS = 3_600_000
_FLIGHTS = Side("f", "flights", ("carrier", "flight", "dest", "dep_delay"), HOUR_MS)
_WEATHER = Side("w", "weather", ("temp", "wind_speed", "visib"), HOUR_MS)
_PLANES = Side("p", "planes", ("manufacturer", "model", "seats"), 400 * 24 * HOUR_MS)
_SAME_HOUR = [("f.origin", "w.origin"), ("f.time_hour", "w.time_hour")]
_SAME_PLANE = [("f.tailnum", "p.tailnum")]
CASES = (
    JoinCase("flights, weather", [_FLIGHTS, _WEATHER], _SAME_HOUR),
    JoinCase("flights, planes", [_FLIGHTS, _PLANES], _SAME_PLANE),
    JoinCase("flights, weather, planes", [_FLIGHTS, _WEATHER, _PLANES], _SAME_HOUR + _SAME_PLANE),
)


def flights(bench: Bench, data: pathlib.Path) -> None:
    """Compare an engine with Spark on flights, weather and planes."""
    tables = read_flights(data)
    if bench.quick:
        tables = {name: table.slice(0, table.num_rows // 50) for name, table in tables.items()}
    spark = local_spark()
    with tempfile.TemporaryDirectory() as folder:
        streams = Streams(pathlib.Path(folder))
        for name, batches in cut_by_time(tables, BATCHES).items():
            streams.write(name, batches)
        for case in CASES:
            contend(bench, spark, Contest.of(case, streams))
