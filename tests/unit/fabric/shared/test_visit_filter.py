"""Rows go unchecked only where the last check kept nearly all of them, and only for a while."""

from __future__ import annotations

import numpy as np

from eddyline.fabric.shared.visit_filter import SHARE_MIN, UNCHECKED_CHUNKS, VisitFilter

ROWS = np.arange(100)
OWN = np.array([0b10], dtype=np.uint64)


def interested(wanted: int) -> np.ndarray:
    """Return bitmaps of 100 rows, of which the first so many interest a query of the operator."""
    return np.where(np.arange(100) < wanted, 0b10, 0b01).astype(np.uint64)[:, None]


def taken(visit_filter: VisitFilter, wanted: int, chunks: int) -> list[int]:
    """Return how many rows of each chunk visit."""
    return [len(visit_filter.before(ROWS, interested(wanted), OWN)) for _ in range(chunks)]


def test_where_nearly_all_rows_visit_the_next_chunks_are_not_checked() -> None:
    enough = int(100 * SHARE_MIN)
    pattern = [enough, *[100] * UNCHECKED_CHUNKS]
    assert taken(VisitFilter(), enough, 3 * len(pattern)) == 3 * pattern


def test_where_fewer_rows_visit_every_chunk_is_checked() -> None:
    few = int(100 * SHARE_MIN) - 1
    assert taken(VisitFilter(), few, 20) == [few] * 20


def test_rows_that_are_routed_on_are_treated_alike_but_by_themselves() -> None:
    visit_filter = VisitFilter()
    kept = [len(visit_filter.after(ROWS, interested(95), OWN)) for _ in range(12)]
    assert kept == [95, *[100] * UNCHECKED_CHUNKS, 95, 100, 100]
    assert taken(visit_filter, 20, 2) == [20, 20]
    few = VisitFilter()
    assert [len(few.after(ROWS, interested(50), OWN)) for _ in range(12)] == [50] * 12


def test_what_was_not_checked_is_no_evidence() -> None:
    visit_filter = VisitFilter()
    assert visit_filter.is_checking
    taken(visit_filter, 10, 5)
    assert visit_filter.is_checking
    taken(visit_filter, 100, 1)
    assert not visit_filter.is_checking
    taken(visit_filter, 100, UNCHECKED_CHUNKS)
    assert visit_filter.is_checking
    visit_filter.after(ROWS, interested(100), OWN)
    assert not visit_filter.is_checking


def test_rows_that_come_by_another_way_are_checked_at_once() -> None:
    visit_filter = VisitFilter()
    taken(visit_filter, 100, 1)
    visit_filter.after(ROWS, interested(100), OWN)
    visit_filter.check_again()
    assert visit_filter.is_checking
    assert taken(visit_filter, 5, 1) == [5]
    assert len(visit_filter.after(ROWS, interested(5), OWN)) == 5


def test_rows_of_a_chunk_are_judged_by_their_own_bitmaps() -> None:
    some = np.array([3, 40, 99])
    assert VisitFilter().before(some, interested(41), OWN).tolist() == [3, 40]
