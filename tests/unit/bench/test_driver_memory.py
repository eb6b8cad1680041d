"""What the driver keeps of a query."""

from __future__ import annotations

import pytest

from eddyline.bench.driver_memory import COUNT, KINDS, driver_bytes

SHARED_BYTES = 100_000  # of all queries together, most of it the template


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_takes_less_than_three_hundred_bytes_beside_its_text(kind: str) -> None:
    assert 100 < driver_bytes(3_000, kind) < 300 + SHARED_BYTES / 3_000


def test_so_it_does_with_what_all_queries_share() -> None:
    assert driver_bytes(COUNT, "nested AND and OR") < 300
