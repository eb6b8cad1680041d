"""Unit costs that are measured: differences of searches, divided by what they differ by."""

from __future__ import annotations

from eddyline.index.calibration import calibrate


def test_comparing_a_candidate_takes_some_nanoseconds() -> None:
    assert 1.0 < calibrate().compare_ns < 1_000.0
