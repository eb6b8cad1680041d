"""A partition chooses the index that costs least, and a wrong forecast costs little."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.index import partition as partition_module
from eddyline.index.bit_address import BitAddress
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.cost import DEFAULT_COSTS, UnitCosts
from eddyline.index.index import Pattern
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.partition import Partition
from eddyline.index.rivals.batch_join import BatchJoin

ROWS = 10_000
COSTS = UnitCosts(
    hash_ns=3.0,
    compare_ns=15.0,
    insert_ns=5.0,
    visit_ns=25.0,
    call_ns=10_000.0,
    search_ns=22.0,
    sort_ns=5.0,
    exact_ns=18.0,
    scan_ns=1.5,
)


def columns(count: int = 3, rows: int = ROWS) -> Columns:
    rng = np.random.default_rng(4)
    codes = [rng.integers(0, 1 << 64, rows, dtype=np.uint64) for _ in range(count)]
    return Columns(codes, [None] * count)


def partition(bits: tuple[int, ...] = (5, 4, 4), only: str | None = None) -> Partition:
    return Partition(columns(len(bits)), Configuration(bits), COSTS, only)


def test_a_few_searches_of_rows_without_an_index_are_a_join() -> None:
    own = partition((13, 0, 0))
    assert own.choose((1,), 5).name == BatchJoin.name
    assert own.bytes == 0


def test_many_searches_by_a_pattern_get_a_sorted_hash() -> None:
    assert partition().choose((1,), 5_000).name == LazyHash.name


def test_few_searches_by_each_of_many_patterns_share_the_bit_address_index() -> None:
    own = partition()
    patterns: list[Pattern] = [(0, 1), (0, 1, 2)]
    demand = dict.fromkeys(patterns, 60.0)
    assert [own.choose(pattern, 10, demand).name for pattern in patterns] == [BitAddress.name] * 2
    assert own.bytes <= 8 * ROWS


def test_what_searches_paid_too_much_buys_a_sorted_hash() -> None:
    """No forecast ever said that there would be many."""
    own = partition((13, 0, 0))
    chosen = [own.choose((1,), 10).name for _ in range(20)]
    assert chosen[0] == BatchJoin.name
    assert chosen[-1] == LazyHash.name
    # Joins read all rows each time, at 1.5 ns, until that has cost as much as sorting them.
    assert chosen.index(LazyHash.name) == pytest.approx(5.0 / 1.5, abs=1)


def test_a_pattern_that_has_a_sorted_hash_keeps_it() -> None:
    own = partition()
    own.choose((1,), 5_000)
    assert own.choose((1,), 1).name == LazyHash.name


def test_another_configuration_is_built_when_searched() -> None:
    own = partition(only=BitAddress.name)
    before = own.choose((0,), 10)
    own.reconfigure(Configuration((0, 13, 0)))
    assert own.configuration.bits == (0, 13, 0)
    after = own.choose((0,), 10)
    assert before is not after
    probe = [own.columns.codes[1][:10]]
    assert after.ranges((1,), probe).counts.sum() < before.ranges((1,), probe).counts.sum()


def test_the_same_configuration_builds_nothing() -> None:
    own = partition(only=BitAddress.name)
    before = own.choose((0,), 10)
    own.reconfigure(Configuration((5, 4, 4)))
    assert own.choose((0,), 10) is before


def test_sorted_hashes_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least used one goes."""
    own = partition((13, 0, 0))
    own.choose((0,), 9_000)
    own.choose((0,), 9_000)
    own.choose((1,), 9_000)
    monkeypatch.setattr(partition_module, "HASH_BYTES_MAX", own.bytes / ROWS + 1)
    own.choose((0,), 9_000)
    own.choose((2,), 9_000)
    assert own._hashes.patterns == [(0,), (2,)]
    assert own.bytes <= partition_module.HASH_BYTES_MAX * ROWS


def test_only_one_index() -> None:
    assert partition(only=BitAddress.name).choose((1,), 10**6).name == BitAddress.name
    assert partition(only=LazyHash.name).choose((1,), 1).name == LazyHash.name


def test_searches_and_building_are_counted() -> None:
    own = partition()
    own.choose((1,), 5_000)
    own.choose((1,), 5)
    assert own.searches == {((1,), LazyHash.name): 5_005}
    assert own.build_s > 0


def test_no_rows() -> None:
    own = Partition(columns(2, rows=0), Configuration((1, 1)), DEFAULT_COSTS)
    index = own.choose((0,), 3)
    assert len(index.ranges((0,), [np.zeros(3, dtype=np.uint64)]).probes) == 0


def test_a_sorted_hash_that_was_dropped_must_be_paid_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = partition((13, 0, 0))
    while own.choose((1,), 10).name != LazyHash.name:
        pass
    monkeypatch.setattr(partition_module, "HASH_BYTES_MAX", 1)
    assert own.choose((2,), 9_000).name == LazyHash.name
    assert own._hashes.patterns == [(2,)]
    assert own.choose((1,), 10).name != LazyHash.name


def test_an_index_that_is_built_costs_nothing_more() -> None:
    assert partition((13, 0, 0)).choose((0,), 1).name == BatchJoin.name
    built = partition((13, 0, 0))
    assert len(built.bit_address.configuration.bits) == 3
    assert built.choose((0,), 1).name == BitAddress.name


def test_a_search_costs_no_more_than_comparing_all_rows() -> None:
    """One known bit below thirteen unknown ones: that many ranges are not worth a visit."""
    all_rows_ns = COSTS.search_ns + ROWS * COSTS.compare_ns
    assert partition((13, 1)).walked_ns((1,)) == all_rows_ns
    assert partition((4, 1)).walked_ns((1,)) < all_rows_ns


@pytest.mark.parametrize("bits", [(5, 4, 4), (0, 7, 6), (13, 0, 0)])
@pytest.mark.parametrize("probes", [1, 5, 50])
@pytest.mark.parametrize("forecast", [0.0, 1.0])
def test_searches_that_were_not_forecast_cost_at_most_twice_the_best_choice(
    bits: tuple[int, ...], probes: int, forecast: float
) -> None:
    """Of one pattern, after any number of batches; by unit costs."""
    own, pattern = partition(bits), (0,)
    sort_ns, insert_ns = ROWS * COSTS.sort_ns, ROWS * COSTS.insert_ns
    walked_ns, exact_ns = probes * own.walked_ns(pattern), probes * COSTS.exact_ns
    joined_ns = ROWS * COSTS.scan_ns + probes * (COSTS.exact_ns + COSTS.search_ns)
    each_ns = {BitAddress.name: walked_ns, LazyHash.name: exact_ns, BatchJoin.name: joined_ns}
    build_ns = {BitAddress.name: insert_ns, LazyHash.name: sort_ns, BatchJoin.name: 0.0}
    paid_ns, built, worst = 0.0, set[str](), 0.0
    for batches in range(1, 400):
        chosen = own.choose(pattern, probes, {pattern: forecast}).name
        paid_ns += each_ns[chosen] + (0.0 if chosen in built else build_ns[chosen])
        built.add(chosen)
        best_ns = min(build_ns[name] + batches * each_ns[name] for name in each_ns)
        worst = max(worst, paid_ns / best_ns)
    assert worst <= 2.0
