"""Every migration: which partitions are indexed again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.index.configuration import Configuration
from eddyline.index.migration import (
    MIGRATIONS,
    MigrateAll,
    MigrateNothing,
    MigratePartial,
    PartitionUse,
)

BEST = Configuration((0, 8))
OTHERS = [Configuration((8, 0)), Configuration((4, 4)), Configuration((0, 8), (1, 0))]
PARTITIONS = st.lists(
    st.builds(
        PartitionUse,
        rows=st.integers(0, 5_000),
        configuration=st.sampled_from([BEST, *OTHERS]),
        probes_expected=st.floats(0, 1e6),
    )
)


def search_ns(configuration: Configuration, rows: int) -> float:
    """Read the rows of the buckets that a search by the second column leaves."""
    return float(rows / 2 ** configuration.given((1,)))


@pytest.mark.parametrize("name", MIGRATIONS)
@given(partitions=PARTITIONS, move_ns=st.floats(-10, 100))
def test_partitions_with_the_best_configuration_are_never_chosen(
    name: str, partitions: list[PartitionUse], move_ns: float
) -> None:
    chosen = MIGRATIONS[name]().choose(partitions, BEST, search_ns, move_ns)
    assert chosen == sorted(set(chosen))
    assert all(partitions[position].configuration != BEST for position in chosen)


@given(partitions=PARTITIONS)
def test_all_chooses_all_others_and_nothing_none(partitions: list[PartitionUse]) -> None:
    others = [position for position, each in enumerate(partitions) if each.configuration != BEST]
    assert MigrateAll().choose(partitions, BEST, search_ns, 1e9) == others
    assert MigrateNothing().choose(partitions, BEST, search_ns, 0.0) == []


@given(partition=PARTITIONS.filter(len).map(lambda each: each[0]), move_ns=st.floats(0, 100))
def test_partial_chooses_if_the_total_cost_falls(partition: PartitionUse, move_ns: float) -> None:
    """The total, (Cs(BIC) + Cm) < Cs(IC), is what section 8.1 asks for."""
    stay = partition.probes_expected * search_ns(partition.configuration, partition.rows)
    move = partition.probes_expected * search_ns(BEST, partition.rows) + partition.rows * move_ns
    chosen = MigratePartial().choose([partition], BEST, search_ns, move_ns)
    if abs(stay - move) > 1e-6 * (stay + move):
        assert chosen == ([0] if move < stay else [])


class TestPartial:
    OLD = OTHERS[0]

    def choose(self, rows: int, probes_expected: float, move_ns: float) -> list[int]:
        partition = PartitionUse(rows, self.OLD, probes_expected)
        return MigratePartial().choose([partition], BEST, search_ns, move_ns)

    def test_the_benefit_must_be_above_zero(self) -> None:
        """A search saves 255 of 256 ns a row: 256 probes repay 255 ns a row exactly."""
        assert self.choose(rows=256, probes_expected=256.0, move_ns=255.0) == []
        assert self.choose(rows=256, probes_expected=256.0, move_ns=254.9) == [0]

    def test_a_partition_that_expects_no_searches_stays(self) -> None:
        assert self.choose(rows=256, probes_expected=0.0, move_ns=1.0) == []

    def test_a_configuration_that_searches_no_faster_is_not_worth_a_move(self) -> None:
        same_bits = PartitionUse(256, OTHERS[2], 1e9)
        assert MigratePartial().choose([same_bits], BEST, search_ns, 0.1) == []

    def test_each_partition_is_judged_by_its_own_searches(self) -> None:
        partitions = [PartitionUse(256, self.OLD, probes) for probes in (1e3, 1.0, 1e3, 0.0)]
        assert MigratePartial().choose(partitions, BEST, search_ns, 100.0) == [0, 2]


def test_numbers_of_a_partition_are_checked() -> None:
    with pytest.raises(ValueError, match="rows must be at least 0, not -1"):
        PartitionUse(-1, BEST, 0.0)
    for probes in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="probes_expected must be at least 0"):
            PartitionUse(1, BEST, probes)
