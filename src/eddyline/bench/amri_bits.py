"""Figure 9 b of the AMRI paper for other numbers of bits, and tuple by tuple."""

from __future__ import annotations

import statistics
import time

from eddyline.bench.amri_case import Case, hybrid, make_case, paper_9, rivals_of, work_in_words
from eddyline.bench.amri_data import make_streams
from eddyline.bench.amri_methods import BitAddressMethod, HashMethod
from eddyline.bench.amri_trace import trace_of
from eddyline.bench.amri_work import IndexMethod, execute, replay
from eddyline.bench.harness import Bench
from eddyline.index.tuning_options import TuningOptions

#: Bits of a bucket id.
ALL_BITS = (8, 10, 12, 14, 16)


def all_bits(bench: Bench) -> None:
    """Fig 9 b for other numbers of bits: work, memory, results in a second and until it is full."""
    case = make_case(bench)
    hashes = case.hashes(7, hybrid())
    # Room for 7 hash indices over full windows, and a tenth more for rows that wait.
    memory_bytes = 1.1 * max(step.bytes for step in hashes.steps)
    bits_tried = ALL_BITS[:2] if bench.quick else ALL_BITS
    with bench.progress("fig 9 b, bits", len(bits_tried)) as advance:
        for bits in bits_tried:
            label = f"fig 9 b, {bits} bits"
            runs = {
                name: run() for name, run in rivals_of(case, bits).items() if "hash" not in name
            }
            runs["7 hash indices"] = hashes
            # Half of the methods keep up with the arrivals, whichever they are.
            row_ns = [run.cost_ns / sum(step.rows for step in run.steps) for run in runs.values()]
            arrival_ns = statistics.median(row_ns)
            until_full = {
                name: run.results_until_full(arrival_ns, memory_bytes) for name, run in runs.items()
            }
            for name, run in runs.items():
                bench.add(
                    f"{label}: work per result, {name}",
                    run.per_result_ns / 1000,
                    "µs",
                    f"{work_in_words(run)}; {case.setting}",
                )
                bench.add(f"{label}: index bytes a tuple, {name}", run.bytes_per_row, "bytes")
            for own, name, paper in (
                ("AMRI", "7 hash indices", 1.93),
                ("AMRI", "static bitmap", 1.75),
                ("AMRI, our tuning", "7 hash indices", None),
                ("AMRI, our tuning", "static bitmap, our selection", None),
            ):
                bench.add(
                    f"{label}: results until memory is full, {own} / {name}",
                    until_full[own] / max(until_full[name], 1),
                    "x",
                    f"tuples arrive every {arrival_ns:,.0f} ns, waiting ones take 64 bytes, room "
                    f"for {memory_bytes / 2**20:.1f} MiB; {own} has {until_full[own]:,}",
                    paper,
                )
            _per_second(bench, label, case, bits)
            advance()


def _per_second(bench: Bench, label: str, case: Case, bits: int) -> None:
    """Time the searches themselves, indexes and tuning included."""
    methods: dict[str, IndexMethod] = {
        "AMRI": BitAddressMethod(case.training, paper_9(bits)),
        "AMRI, our tuning": BitAddressMethod(case.training, TuningOptions(bits=bits)),
        "static bitmap": BitAddressMethod(case.training, paper_9(bits), is_tuned=False),
        "7 hash indices": HashMethod(case.training, 7, hybrid()),
    }
    for name, method in methods.items():
        began = time.perf_counter()
        execute(case.trace, method)
        seconds = time.perf_counter() - began
        bench.add(f"{label}: results per second, {name}", case.trace.results / seconds, "a second")


def tuple_by_tuple(bench: Bench) -> None:
    """The same tuples one by one and in batches of 1,000: the same work a result, or nearly."""
    rows = 300 if bench.quick else 2_500
    runs = {}
    training = make_case(bench).training
    for batch_rows in (1, 250):
        streams = make_streams(bench.seed, 1, phase_rows=rows)
        trace = trace_of(streams, batch_rows, seed=bench.seed, phase_rows=rows)
        with bench.progress(f"batches of {4 * batch_rows}", 2) as advance:
            for name, method in (
                ("AMRI", BitAddressMethod(training, paper_9())),
                ("7 hash indices", HashMethod(training, 7, hybrid())),
            ):
                runs[name, batch_rows] = replay(trace, method)
                advance()
    for name in ("AMRI", "7 hash indices"):
        bench.add(
            f"{name}: work per result, tuple by tuple / in batches of 1,000",
            runs[name, 1].per_result_ns / runs[name, 250].per_result_ns,
            "x",
            f"the first {rows:,} tuples of each stream only; results {runs[name, 1].results:,} "
            f"and {runs[name, 250].results:,}",
        )
