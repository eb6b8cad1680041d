"""What the driver keeps of a query."""

from __future__ import annotations

import pytest

from eddyline.bench.driver_memory import KINDS, driver_bytes


def test_a_query_takes_less_than_three_hundred_bytes_beside_its_text() -> None:
    assert driver_bytes(10_000) < 300


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_measured(kind: str) -> None:
    """Kinds without a template are kept whole; what that takes is in the benchmark."""
    assert 100 < driver_bytes(50, kind) < 6_000
