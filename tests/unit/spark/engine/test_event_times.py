"""Streams that stand still: when they count as idle, and how far joins go on without them."""

from __future__ import annotations

import pathlib

import pytest
from pyspark.sql.types import StructType

from eddyline.errors import EngineError
from eddyline.spark.engine import event_times
from eddyline.spark.engine.batch_log import BatchLog
from eddyline.spark.engine.checks import read_idle_us
from eddyline.spark.engine.event_times import EventTimes
from eddyline.spark.engine.stream_info import StreamInfo


def stream(number: int, name: str, delay_us: int = 0, idle_us: int | None = None) -> StreamInfo:
    return StreamInfo(number, name, StructType(), "UTC", "ts", delay_us, idle_us)


def test_a_stream_is_idle_after_a_time_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(event_times.time, "monotonic", lambda: clock[0])
    times = EventTimes([stream(0, "a", idle_us=5_000_000), stream(1, "b")], {})
    clock[0] = 104.9
    assert times.idle() == []
    clock[0] = 105.0
    assert times.idle() == ["a"]
    times.advance({"newest_0": 7, "late_0": 0, "newest_1": None, "late_1": 0})
    assert times.idle() == []
    clock[0] = 1_000.0
    assert times.idle() == ["a"]  # b may stand still for ever


def test_an_idle_stream_counts_as_far_as_those_that_it_is_joined_with() -> None:
    streams = [
        stream(0, "a", 5),
        stream(1, "b", 10),
        stream(2, "c"),
        stream(3, "d"),
        stream(4, "e"),
    ]
    times = EventTimes(streams, {"a": 3, "b": 110, "c": 80, "d": 1, "e": 900})
    joins = [("a", "b"), ("a", "c", "e"), ("c", "d")]
    assert times.skip_ahead(["a", "e"], joins) == ["a"]  # e is further already
    assert times.newest_us["a"] == min(110 - 10, 80) + 5
    assert times.newest_us["e"] == 900
    assert times.skip_ahead(["a"], joins) == []  # nothing new
    assert times.skip_ahead(["c", "d"], [("c", "d")]) == []  # nothing to go on to


def test_what_nothing_was_read_from_moves_nobody() -> None:
    times = EventTimes([stream(0, "a"), stream(1, "b")], {"a": 3})
    assert times.skip_ahead(["a"], [("a", "b")]) == []
    assert times.newest_us == {"a": 3}


def test_a_replay_sees_the_same_streams_as_idle(tmp_path: pathlib.Path) -> None:
    log = BatchLog(tmp_path)
    assert log.begin(0, 1, {}, "x", ["a"]).idle == ["a"]
    assert BatchLog(tmp_path).begin(0, 1, {}, "x", []).idle == ["a"]


def test_bad_times_are_refused() -> None:
    assert read_idle_us("s", "ts", "5 minutes") == 300_000_000
    assert read_idle_us("s", None, None) is None
    with pytest.raises(EngineError, match="cannot read idle='soon'; write"):
        read_idle_us("s", "ts", "soon")
    with pytest.raises(EngineError, match="cannot read idle='0 seconds'"):
        read_idle_us("s", "ts", "0 seconds")
    with pytest.raises(EngineError, match="needs a time column"):
        read_idle_us("s", None, "5 minutes")
