"""`eddyline bench amri`: its parts run, and the simulator finds and counts what it should."""

from __future__ import annotations

import itertools
import pathlib

import numpy as np
import pytest

from eddyline.arrays import Codes
from eddyline.bench import amri
from eddyline.bench.amri_data import STREAMS, Streams, column_for, make_streams
from eddyline.bench.amri_methods import BitAddressMethod, HashMethod, Training
from eddyline.bench.amri_trace import Joiner, Search, Trace, Tuples, trace_of
from eddyline.bench.amri_tracking import track
from eddyline.bench.amri_work import Replay, StepWork, Work, execute, replay, search_work
from eddyline.bench.harness import Bench, Result
from eddyline.index.bit_address import BitAddress
from eddyline.index.bit_map import BitMap
from eddyline.index.columns import Columns
from eddyline.index.configuration import Configuration
from eddyline.index.key_map import KeyMap
from eddyline.index.lazy_hash import LazyHash
from eddyline.index.rivals import BatchJoin, HashIndices, Scan
from eddyline.index.schedules import Continuous
from eddyline.index.time_partitions import MakeIndex
from eddyline.index.tuning_options import TuningOptions


def results_of(part: str, **options: pathlib.Path) -> dict[str, Result]:
    bench = Bench("amri", quick=True, rounds=1, only=part, **options)  # type: ignore[arg-type]
    amri.run(bench)
    return {result.metric: result for result in bench.results}


# --- the simulator -------------------------------------------------------------------------------


def tiny_streams(seed: int, rows: int = 16, values: int = 2) -> Streams:
    rng = np.random.default_rng(seed)
    codes = [
        [rng.integers(0, values, rows).astype(np.uint64) << np.uint64(61) for _ in range(3)]
        for _ in range(STREAMS)
    ]
    return Streams(codes)


def nested_loop(trace: Trace, batch_rows: int) -> set[tuple[int, ...]]:
    """Return the combinations of rows that are equal in all columns, within partitions' windows."""
    codes, partition_rows = trace.streams.codes, trace.partition_rows
    reach = trace.window_rows // partition_rows
    found = set()
    for rows in itertools.product(range(trace.streams.rows), repeat=STREAMS):
        pairs = itertools.combinations(range(STREAMS), 2)
        if any(
            codes[a][column_for(a, b)][rows[a]] != codes[b][column_for(b, a)][rows[b]]
            for a, b in pairs
        ):
            continue
        # The last of the four to arrive searches for the others.
        last = max(range(STREAMS), key=lambda stream: (rows[stream] // batch_rows, stream))
        turn = rows[last] // batch_rows
        received = [
            min((turn + (stream <= last)) * batch_rows, trace.streams.rows)
            for stream in range(STREAMS)
        ]
        if all(
            rows[stream] // partition_rows >= received[stream] // partition_rows - reach
            for stream in range(STREAMS)
            if stream != last
        ):
            found.add(rows)
    return found


def bit_address(columns: Columns) -> BitAddress:
    return BitAddress(columns, KeyMap.of(Configuration((1, 2, 1), (2, 0, 1)), columns))


def two_hashes(columns: Columns) -> HashIndices:
    return HashIndices(columns, [(1,), (0, 2)])


@pytest.mark.parametrize("batch_rows", [1, 5])
@pytest.mark.parametrize("make", [LazyHash, bit_address, two_hashes, BatchJoin, Scan])
def test_the_join_finds_what_a_nested_loop_finds(make: MakeIndex, batch_rows: int) -> None:
    trace = Trace(tiny_streams(batch_rows), partition_rows=4, window_rows=8)
    found: list[tuple[int, ...]] = []

    def collect(tuples: Tuples) -> None:
        if len(tuples) == STREAMS:
            found.extend(zip(*(tuples[n].tolist() for n in range(STREAMS)), strict=True))

    for _ in Joiner(trace, batch_rows, make, explored_share=0.3, collect=collect).run():
        pass
    assert len(found) == len(set(found)) == trace.results > 20
    assert set(found) == nested_loop(trace, batch_rows)


def test_a_tuple_that_finds_nothing_has_no_results() -> None:
    codes: list[list[Codes]] = [[np.full(4, n, np.uint64) for _ in range(3)] for n in range(4)]
    trace = trace_of(Streams(codes), batch_rows=2)
    assert trace.results == 0
    assert trace.requests == 16  # each tuple searched one state


def test_every_method_serves_the_searches_with_the_same_matches() -> None:
    trace = trace_of(make_streams(0, 2, phase_rows=500), phase_rows=500)
    training = Training.of(trace)
    options = TuningOptions(schedule=lambda: Continuous(500), bits=8)
    methods = [
        BitAddressMethod(training, options),
        BitAddressMethod(training, options, is_tuned=False),
        HashMethod(training, 2, Continuous(500)),
        HashMethod(training, 7),
    ]
    assert len({execute(trace, method) for method in methods}) == 1


# --- counts of work ------------------------------------------------------------------------------


def four_rows() -> Columns:
    """Return rows (0, 0), (0, 1), (1, 0), (1, 1)."""
    codes = [np.array(bits, np.uint64) << np.uint64(63) for bits in ([0, 0, 1, 1], [0, 1, 0, 1])]
    return Columns(codes, [None, None])


@pytest.mark.parametrize(
    ("bits", "pattern", "work"),
    [
        ((1, 1), (0, 1), Work(hashes=2, visits=1, compared=1)),  # one bucket of one row
        ((1, 1), (0,), Work(hashes=1, visits=1, compared=2)),  # two buckets side by side
        ((1, 0), (1,), Work(hashes=0, visits=1, compared=4)),  # no bit is known: all rows
    ],
)
def test_work_of_a_search_by_bit_address(
    bits: tuple[int, int], pattern: tuple[int, ...], work: Work
) -> None:
    columns = four_rows()
    index = BitAddress(columns, KeyMap(Configuration(bits), (BitMap(bits[0]), BitMap(bits[1]))))
    search = Search(0, pattern, [columns.codes[column][3:] for column in pattern])
    assert search_work(index, search) == work


@pytest.mark.parametrize(
    ("pattern", "work"),
    [
        ((0,), Work(hashes=1, visits=1, compared=2)),
        ((0, 1), Work(hashes=1, visits=1, compared=2)),  # by the index on the first column
        ((1,), Work(visits=1, compared=4)),  # no index suits
    ],
)
def test_work_of_a_search_by_hash_index(pattern: tuple[int, ...], work: Work) -> None:
    columns = four_rows()
    search = Search(0, pattern, [columns.codes[column][3:] for column in pattern])
    assert search_work(HashIndices(columns, [(0,)]), search) == work


def test_entries_are_made_for_each_row_and_index_and_deleted_when_they_expire() -> None:
    rows, phase_rows = 20_000, 10_000
    trace = trace_of(make_streams(0, 2, phase_rows=phase_rows), 2_500, phase_rows=phase_rows)
    training = Training.of(trace)
    hashes = replay(trace, HashMethod(training, 3)).work
    static = replay(trace, BitAddressMethod(training, TuningOptions(bits=8), is_tuned=False)).work
    assert (static.made, hashes.made) == (4 * rows, 12 * rows)
    # At the end a state has partitions 4 to 7; those before are out of every window.
    assert (static.deleted, hashes.deleted) == (4 * rows // 2, 12 * rows // 2)


def test_results_stop_when_memory_is_full() -> None:
    steps = [StepWork(rows=10, cost_ns=100.0, results=1, bytes=1_000) for _ in range(5)]
    run = Replay(Work(), steps)
    assert run.results_until_full(arrival_ns=10.0, memory_bytes=1_000) == 5  # it keeps up
    # Rows arrive twice as fast: 10 more wait after each step, of 64 bytes each.
    assert run.results_until_full(arrival_ns=5.0, memory_bytes=1_000 + 20 * 64) == 2
    assert run.results_until_full(arrival_ns=10.0, memory_bytes=999) == 0


def test_tuning_changes_the_work_only_if_paths_change() -> None:
    options = TuningOptions(bits=11)
    ratios = []
    for paths in ((1, 1, 1, 1), (6, 6, 6, 6)):
        seeds = (0, 0) if paths[0] == 1 else (0, 1)
        traces = [
            trace_of(make_streams(seed, 3, paths, 2_500), explored_share=0.0, phase_rows=2_500)
            for seed in seeds
        ]
        training = Training.of(traces[1])
        tuned = replay(traces[0], BitAddressMethod(training, options))
        static = replay(traces[0], BitAddressMethod(training, options, is_tuned=False))
        ratios.append(static.per_result_ns / tuned.per_result_ns)
    constant, changing = ratios
    assert 0.8 < constant < 1.1
    assert changing > 1.2


def test_tracking_fails_with_the_threshold_of_the_paper() -> None:
    good = track(3, 0.95, seed=0, phase_count=2, phase_windows=1)
    bad = track(3, 0.95, 0, 2, 1, TuningOptions.paper())
    assert good.amri < 1.2 * good.best
    # Phases of one window: each late batch weighs eight times as much as in the benchmark.
    assert good.amri < good.later < good.static
    assert bad.later > 1.5 * good.later


# --- parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "papers"),
    [
        ("assessment", [1.19, 1.19, 1.3, None]),
        ("schedule", [1.65, 1.29, 1.18]),
        ("hashes", ["above 1"] * 6),
        ("tuples", [None] * 2),
        ("memory", [None] * 4),
        ("build", [None] * 2),
        ("wide", [None] * 4),
    ],
)
def test_parts_compare_with_the_paper(part: str, papers: list[float | str | None]) -> None:
    results = results_of(part)
    assert [result.paper for result in results.values()] == papers
    assert all(result.value > 0 for result in results.values())


def test_memory_is_that_of_one_index() -> None:
    results = results_of("memory")
    assert all(r.value <= 8 for metric, r in results.items() if "bytes a tuple" in metric)
    assert all(r.value >= 7 for metric, r in results.items() if "7 hash indices" in metric)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["migration", "rivals", "bits", "paths", "tracking", "probe"])
def test_long_parts_run(part: str) -> None:
    results = results_of(part)
    assert all(np.isfinite(result.value) for result in results.values())
    assert len(results) >= 4


def test_paths_are_those_of_figure_10() -> None:
    results = make_streams(0, 12, (1, 2, 6, 6), phase_rows=10).paths
    assert results is not None
    assert [len(set(orders)) for orders in results[:2]] == [1, 2]
    assert len(set(results[2])) > 3
