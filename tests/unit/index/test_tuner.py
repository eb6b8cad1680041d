"""The tuner: assesses, selects and migrates as its parts say, and writes events."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.index.assessment import SRIA
from eddyline.index.bit_address import BitAddress
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.demand import Demand
from eddyline.index.index import Pattern
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.migration import MigrateAll, MigrateNothing, MigratePartial, Migration
from eddyline.index.partition import Partition
from eddyline.index.schedules import Continuous, Periodic
from eddyline.index.tuner import Tuner
from eddyline.index.tuning_options import TuningOptions
from eddyline.journal.events import IndexAssessed, IndexReconfigured, IndexRivalChosen

ROWS = 4_096


def columns(count: int = 3, rows: int = ROWS) -> Columns:
    rng = np.random.default_rng(count)
    codes = [rng.integers(0, 1 << 64, rows, dtype=np.uint64) for _ in range(count)]
    return Columns(codes, [None] * count)


def continuous(requests: int = 1_000, migration: Migration | None = None) -> Tuner:
    options = TuningOptions(
        assessment=SRIA,
        schedule=lambda: Continuous(window_requests=requests),
        migration=migration or MigrateNothing(),
    )
    return Tuner(options)


def tune(tuner: Tuner, partitions: list[Partition], searches: dict[Pattern, int]) -> list[object]:
    tuner.arrived("S", sum(map(len, partitions)))
    for pattern, requests in searches.items():
        tuner.record("S", pattern, requests)
    return list(tuner.tune({"S": partitions}))


def test_bits_go_to_the_columns_that_are_searched() -> None:
    tuner = continuous()
    partitions = [Partition(columns(), tuner.configuration("S", columns()))]
    assert partitions[0].configuration.bits == (4, 4, 4)
    tuner.name_columns("S", ["room", "floor", "mote"])
    assessed, changed = tune(tuner, partitions, {(1,): 900, (0, 1): 100})
    assert isinstance(assessed, IndexAssessed)
    assert isinstance(changed, IndexReconfigured)
    assert assessed.frequencies == {"floor": 0.9, "room, floor": 0.1}
    assert (assessed.requests, assessed.entries) == (1_000, 2)
    assert changed.before == "room:4 floor:4 mote:4"
    assert changed.after.startswith("floor:")
    assert changed.cost_after < changed.cost_before
    bits = tuner.configuration("S", columns()).bits
    assert bits[1] >= 10
    assert bits[2] == 0


def test_partitions_keep_what_they_were_written_with() -> None:
    tuner = continuous(migration=MigrateNothing())
    partitions = [Partition(columns(), Configuration((12, 0, 0))) for _ in range(3)]
    changed = tune(tuner, partitions, {(2,): 1_000})[-1]
    assert isinstance(changed, IndexReconfigured)
    assert (changed.partitions, changed.migrated) == (3, 0)
    assert {own.configuration.bits for own in partitions} == {(12, 0, 0)}


def test_migration_of_all_partitions() -> None:
    tuner = continuous(migration=MigrateAll())
    partitions = [Partition(columns(), Configuration((12, 0, 0))) for _ in range(3)]
    changed = tune(tuner, partitions, {(2,): 1_000})[-1]
    assert isinstance(changed, IndexReconfigured)
    assert changed.migrated == 3
    assert {own.configuration.bits[2] for own in partitions} == {12}


def test_partial_migration_weighs_the_searches_to_come() -> None:
    """Few searches per arrival: only the newest partitions will be searched often enough."""
    migrated = {}
    for requests in (1, 1_000):
        tuner = continuous(requests, MigratePartial())
        partitions = [Partition(columns(), Configuration((12, 0, 0))) for _ in range(8)]
        changed = tune(tuner, partitions, {(2,): requests})[-1]
        assert isinstance(changed, IndexReconfigured)
        migrated[requests] = [own.configuration.bits[2] == 12 for own in partitions]
    assert migrated[1_000] == [True] * 8
    assert migrated[1] == sorted(migrated[1])
    assert not migrated[1][0]


def test_a_configuration_that_is_best_stays() -> None:
    tuner = continuous()
    partitions = [Partition(columns(), Configuration((0, 12, 0)))]
    (assessed,) = tune(tuner, partitions, {(1,): 1_000})
    assert isinstance(assessed, IndexAssessed)
    assert assessed.before == assessed.after
    assert tuner.configuration("S", columns()).bits == (0, 12, 0)


def test_nothing_is_tuned_before_an_assessment_is_complete() -> None:
    tuner = continuous()
    assert tune(tuner, [Partition(columns(), Configuration((4, 4, 4)))], {(1,): 999}) == []
    assert tuner.configuration("S", columns()).bits == (4, 4, 4)


def test_one_column_has_all_bits_and_no_events() -> None:
    tuner = continuous()
    partition = Partition(columns(1), tuner.configuration("S", columns(1)))
    assert partition.configuration.bits == (12,)
    assert tune(tuner, [partition], {(0,): 1_000}) == []


def test_no_column_gets_more_bits_than_its_values_fill() -> None:
    tuner = continuous()
    few = columns()
    few.codes[1][:] = few.codes[1][:4].repeat(ROWS // 4)
    partitions = [Partition(few, Configuration((4, 4, 4)))]
    tune(tuner, partitions, {(1,): 1_000})
    assert tuner.configuration("S", few).bits[1] == 2


def test_a_constant_column_gets_no_bits() -> None:
    constant = columns()
    constant.codes[0][:] = 7
    assert continuous().configuration("S", constant).bits == (0, 6, 6)


def test_searches_that_a_row_meets_follow_from_requests_and_arrivals() -> None:
    tuner = continuous()
    partitions = [Partition(columns(), Configuration((4, 4, 4))) for _ in range(2)]
    tune(tuner, partitions, {(1,): 1_000})
    # 1,000 requests while 8,192 rows arrived, and 8,192 rows are stored.
    assert tuner.expected("S")[(1,)] == pytest.approx(1_000)


def test_what_was_assessed_before_is_a_start() -> None:
    tuner = Tuner()
    tuner.begin_with("S", Demand({(2,): 1.0}, 10_000.0))
    assert tuner.configuration("S", columns()).bits == (0, 0, 12)
    assert tuner.expected("S") == {(2,): 10_000.0}


def test_states_are_tuned_apart() -> None:
    tuner = continuous()
    partitions = {name: [Partition(columns(), Configuration((4, 4, 4)))] for name in "AB"}
    for name, pattern in (("A", (0,)), ("B", (2,))):
        tuner.arrived(name, ROWS)
        tuner.record(name, pattern, 1_000)
    events = tuner.tune(partitions)
    assert {e.state for e in events if isinstance(e, IndexReconfigured)} == {"A", "B"}
    assert tuner.configuration("A", columns()).bits[0] == 12
    assert tuner.configuration("B", columns()).bits[2] == 12


def test_a_rival_is_an_event_once() -> None:
    tuner = continuous()
    for index in (LazyHash.name, LazyHash.name, BitAddress.name):
        tuner.note_choice("S", (0, 1), index, ROWS, 70)
    (event,) = tuner.tune({})
    assert isinstance(event, IndexRivalChosen)
    assert (event.pattern, event.rival, event.rows, event.searches) == (
        "#1, #2",
        "sorted hash",
        ROWS,
        70,
    )
    assert tuner.tune({}) == []


def test_more_columns_than_bits() -> None:
    tuner = continuous()
    few = columns(8, rows=16)
    assert tuner.configuration("S", few).total == 4
    partitions = [Partition(few, tuner.configuration("S", few))]
    tune(tuner, partitions, {(7,): 1_000})
    assert tuner.configuration("S", few).bits[7] > 0


def test_the_papers_settings() -> None:
    options = TuningOptions.paper(error=0.1, threshold=0.15, bits=12)
    tuner = Tuner(options)
    assert tuner.configuration("S", columns()).total == 12
    assert isinstance(options.migration, MigrateNothing)
    assert options.only == BitAddress.name


def test_the_time_that_tuning_takes_is_counted() -> None:
    tuner = continuous()
    tune(tuner, [Partition(columns(), Configuration((4, 4, 4)))], {(1,): 1_000})
    assert tuner.busy_s > 0


def surprised(at_once: bool = True, only: str | None = BitAddress.name) -> list[object]:
    """Return the events before a batch of searches by columns that were never searched."""
    options = TuningOptions(assessment=SRIA, at_once=at_once, only=only)
    tuner, rows = Tuner(options), columns()
    partition = Partition(rows, tuner.configuration("S", rows), only=only)
    tune(tuner, [partition], {(0,): 2_000})
    tuner.record("S", (2,), 1_900)
    tuner.prepare("S", (2,), 1_900, [partition])
    return list(tuner.tune({"S": []}))


def test_searches_that_cost_more_than_a_new_index_are_prepared_for() -> None:
    assessed, changed = surprised()
    assert isinstance(assessed, IndexAssessed)
    assert isinstance(changed, IndexReconfigured)
    assert (assessed.requests, changed.migrated) == (1_900, 1)
    assert not surprised(at_once=False)


def test_searches_that_a_rival_serves_are_no_reason_to_select() -> None:
    assert not surprised(only=None)


def test_a_configuration_that_knows_a_pattern_is_not_selected_again_for_it() -> None:
    options = TuningOptions(assessment=SRIA, only=BitAddress.name)
    tuner, rows = Tuner(options), columns()
    partition = Partition(rows, tuner.configuration("S", rows), only=BitAddress.name)
    tune(tuner, [partition], {(0,): 1_900, (2,): 100})
    for _ in range(3):
        tuner.record("S", (2,), 100)
        tuner.prepare("S", (2,), 100, [partition])
    # 300 searches are expected among 2,000: three times as many as were assessed, noticed once.
    assert [type(event) for event in tuner.tune({"S": []})] == [IndexAssessed]
    assert tuner.demand("S").frequencies == pytest.approx({(0,): 0.855, (2,): 0.145})


def test_an_early_selection_does_not_end_the_assessment() -> None:
    options = TuningOptions(assessment=SRIA, only=BitAddress.name)
    tuner, rows = Tuner(options), columns()
    partition = Partition(rows, tuner.configuration("S", rows), only=BitAddress.name)
    tune(tuner, [partition], {(0,): 2_000})
    tuner.arrived("S", ROWS)
    for pattern, probes in {(2,): 1_500, (1,): 500}.items():
        tuner.record("S", pattern, probes)
        tuner.prepare("S", pattern, probes, [partition])
    tuner.tune({"S": [partition]})
    assert tuner.demand("S").frequencies == {(2,): 0.75, (1,): 0.25}


def test_an_assessment_counts_what_came_after_the_one_before() -> None:
    tuner = continuous()
    partitions = [Partition(columns(), Configuration((4, 4, 4)))]
    tune(tuner, partitions, {(1,): 3_000})
    assert tuner.expected("S") == {(1,): pytest.approx(3_000)}
    (assessed, *_) = tune(tuner, partitions, {(2,): 1_000})
    assert isinstance(assessed, IndexAssessed)
    assert (assessed.requests, assessed.frequencies) == (1_000, {"#3": 1.0})
    # 1,000 requests while 4,096 rows arrived, and 4,096 rows are stored.
    assert tuner.expected("S") == {(2,): pytest.approx(1_000)}
    assert tuner.configuration("S", columns()).bits == (0, 0, 12)


def test_the_searches_of_earlier_rows_are_not_counted_for_those_that_arrive() -> None:
    tuner = continuous()
    partitions = [Partition(columns(), Configuration((4, 4, 4)))]
    tune(tuner, partitions, {(1,): 1_000})
    tuner.arrived("S", 3 * ROWS)
    tune(tuner, partitions, {(1,): 1_000})
    # While four times as many rows arrived as are stored, each met a quarter of the searches.
    assert tuner.expected("S") == {(1,): pytest.approx(250)}


def test_the_newest_of_the_large_partitions_is_compared_with() -> None:
    """A partition with a few rows, as a micro-batch writes it, says little of the state."""
    tuner = continuous()
    partitions = [
        Partition(columns(), Configuration(bits)) for bits in ((12, 0, 0), (0, 12, 0), (0, 0, 12))
    ]
    partitions.append(Partition(columns(rows=20), Configuration((1, 2, 1))))
    assessed, changed = tune(tuner, partitions, {(1,): 1_000})
    assert isinstance(assessed, IndexAssessed)
    assert (assessed.before, assessed.after) == ("#3:12", "#2:12")
    assert isinstance(changed, IndexReconfigured)


def test_bits_that_values_do_not_fill_are_no_reason_to_index_again() -> None:
    """Four values fill two bits: a configuration that gives them ten is as good as the best."""
    few = columns()
    few.codes[1][:] = few.codes[1][:4].repeat(ROWS // 4)
    tuner = continuous(migration=MigrateAll())
    partitions = [Partition(few, Configuration((0, 10, 2)))]
    searches = {(1,): 1_000}
    (assessed, *_) = tune(tuner, partitions, searches)
    assert isinstance(assessed, IndexAssessed)
    filled = continuous(migration=MigrateAll())
    (again, *_) = tune(filled, [Partition(few, Configuration((0, 2, 2)))], searches)
    assert isinstance(again, IndexAssessed)
    assert assessed.cost_before == pytest.approx(again.cost_before)


def test_a_state_without_partitions_or_counted_searches_is_left_alone() -> None:
    tuner = continuous()
    tuner.record("S", (1,), 1_000)
    assert tuner.tune({"S": []}) == []
    assert tuner.demand("S") == Demand()


def test_a_configuration_that_costs_as_much_is_not_exchanged() -> None:
    few = columns()
    few.codes[1][:] = few.codes[1][:4].repeat(ROWS // 4)
    tuner = continuous(migration=MigrateAll())
    partition = Partition(few, Configuration((0, 10, 0)))  # as good as two bits for four values
    (assessed,) = tune(tuner, [partition], {(1,): 1_000})
    assert isinstance(assessed, IndexAssessed)
    assert assessed.before == assessed.after
    assert partition.configuration.bits == (0, 10, 0)
    assert tuner.configuration("S", few).bits == (0, 10, 0)


def test_searches_that_the_index_serves_already_are_not_prepared_for() -> None:
    """Nobody searched by both columns before, but the bits of the first one are enough."""
    tuner, rows = Tuner(TuningOptions(assessment=SRIA, only=BitAddress.name)), columns()
    partition = Partition(rows, tuner.configuration("S", rows), only=BitAddress.name)
    tune(tuner, [partition], {(0,): 2_000})
    assert partition.configuration.bits == (12, 0, 0)
    tuner.record("S", (0, 1), 1_900)
    tuner.prepare("S", (0, 1), 1_900, [partition])
    assert tuner.tune({"S": []}) == []
    assert tuner.demand("S").frequencies == {(0,): 1.0}


def test_an_early_selection_expects_as_many_searches_of_a_row_as_were_assessed() -> None:
    tuner, rows = Tuner(TuningOptions(assessment=SRIA, only=BitAddress.name)), columns()
    partition = Partition(rows, tuner.configuration("S", rows), only=BitAddress.name)
    tune(tuner, [partition], {(0,): 2_000})
    assert tuner.demand("S").searches == pytest.approx(2_000)
    tuner.record("S", (2,), 1_900)  # no row has arrived since
    tuner.prepare("S", (2,), 1_900, [partition])
    assert (2,) in tuner.demand("S").frequencies
    assert tuner.demand("S").searches == pytest.approx(2_000)


def test_searches_are_counted_only_while_the_schedule_asks_for_it() -> None:
    schedule = Periodic(period_requests=1_000, window_requests=100)
    tuner = Tuner(TuningOptions(assessment=SRIA, schedule=lambda: schedule))
    partition = Partition(columns(), Configuration((4, 4, 4)))
    tune(tuner, [partition], {(0,): 1_000})  # the period before the first assessment
    (assessed, *_) = tune(tuner, [partition], {(1,): 100})
    assert isinstance(assessed, IndexAssessed)
    assert (assessed.requests, assessed.frequencies) == (100, {"#2": 1.0})


def test_the_first_searches_are_all_that_is_known() -> None:
    shares = {(0,): 0.25, (1,): 0.75}
    assert Demand().after(shares, 0.9, 8.0) == Demand(shares, 8.0)
    assert Demand({(2,): 1.0}, 4.0).after({}, 0.0, 8.0) == Demand({(2,): 1.0}, 4.0)
    mixed = Demand({(2,): 1.0}, 4.0).after(shares, 0.5, 8.0)
    assert mixed.frequencies == {(2,): 0.5, (0,): 0.125, (1,): 0.375}
