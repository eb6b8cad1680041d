"""What the driver keeps of a query."""

from __future__ import annotations

import pytest

from eddyline.bench.driver_memory import KINDS, driver_bytes


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_takes_less_than_three_hundred_bytes_beside_its_text(kind: str) -> None:
    assert 100 < driver_bytes(6_000, kind) < 300
