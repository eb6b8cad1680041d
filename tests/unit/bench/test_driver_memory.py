"""What the driver keeps of a query."""

from __future__ import annotations

from eddyline.bench.driver_memory import driver_bytes


def test_a_query_takes_less_than_three_hundred_bytes_beside_its_text() -> None:
    assert driver_bytes(10_000) < 300
