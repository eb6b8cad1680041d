"""Tables of few slots answer as the grouped filter does that they are made from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.operators.bitmaps import set_bits
from eddyline.operators.domain import Whole
from eddyline.operators.grouped_filter import GroupedFilter
from eddyline.operators.region_tables import RegionTable
from eddyline.operators.value_set import NOT_NULL, ONLY_NULL, ValueSet

SLOTS = 1_000
WHOLE = Whole()


def random_values(rng: np.random.Generator, largest: int) -> ValueSet:
    kind, constants = rng.integers(5), rng.integers(0, largest, 3).tolist()
    if kind == 0:
        return WHOLE.equal_to_any(constants)
    if kind == 1:
        return ~WHOLE.compare("=", constants[0]) | ONLY_NULL
    if kind == 2:
        return ONLY_NULL if constants[0] % 2 else NOT_NULL
    return WHOLE.compare(str(rng.choice(["<", ">", ">="])), constants[0])


def how_lines_are_found(table: RegionTable) -> str:
    if table._has_all:
        return "region"
    return "search" if table._line is None else "list"


@pytest.mark.parametrize("default", [False, True])
@pytest.mark.parametrize(
    ("count", "largest", "found"),
    [(2, 5_000, "search"), (200, 5_000, "list"), (SLOTS - 1, 60, "region")],
)
def test_a_table_has_the_bits_of_its_slots_at_their_places(
    default: bool, count: int, largest: int, found: str
) -> None:
    rng = np.random.default_rng(count)
    group = GroupedFilter(WHOLE, default, words=SLOTS // 64 + 1)
    loaded = {slot: random_values(rng, largest) for slot in range(0, SLOTS, 2)}
    loaded[500] = WHOLE.equal_to_any([7, 50])
    group.load(loaded)
    for slot in range(1, SLOTS - 100, 4):  # others have no predicate: the default
        group.add(slot, random_values(rng, largest))
    for slot in range(0, 100, 2):
        group.remove(slot)
    slots = rng.permutation(np.append(np.arange(500), np.arange(501, SLOTS)))[:count]
    slots[0] = 500
    places = rng.permutation(count + 70)[:count]
    words = (count + 70) // 64 + 1
    table = group.tables().table(slots, places, words)
    assert table is not None
    assert how_lines_are_found(table) == found
    assert len(table.bitmaps) <= group.tables().lines_max(slots)
    values = pa.array([None, *rng.integers(-10, largest + 10, 300).tolist(), None])
    out = np.empty((len(values), words), dtype=np.uint64)
    table.take(group.regions(values), out)
    place_of = dict(zip(slots.tolist(), places.tolist(), strict=True))
    rows, accepted = set_bits(group.accepting(values))
    expected = {
        (row, place_of[slot])
        for row, slot in zip(rows.tolist(), accepted.tolist(), strict=True)
        if slot in place_of
    }
    assert set(zip(*map(np.ndarray.tolist, set_bits(out)), strict=True)) == expected


def test_slots_without_a_predicate_need_no_table() -> None:
    group = GroupedFilter(WHOLE, True, words=2)
    group.load({3: WHOLE.compare(">", 5)})
    tables = group.tables()
    assert tables.table(np.array([2, 70]), np.array([0, 1]), 1) is None
    assert tables.table(np.array([2, 3]), np.array([0, 1]), 1) is not None
