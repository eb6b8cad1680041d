"""`eddyline bench where`: Python predicates over text, on Spark.

Against what a user would do instead: Spark's own filter, a chain of iterator UDFs (which Spark does
not fuse, so it short-circuits) in written and in best order, and one hand-written Arrow UDF that
evaluates the predicates in the best order there is, found by exhaustive search over the whole data.
"""

from __future__ import annotations

import itertools
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray, FloatArray
from eddyline.bench.harness import (
    Bench,
    by_round,
    local_spark,
    mean_of,
    ratio,
    run_to_noop,
    to_noop,
)
from eddyline.bench.where_cheap import cheap
from eddyline.ordering.static import ordering_cost
from eddyline.spark.common.predicates import udf
from eddyline.spark.where.where import Where, where
from eddyline.testing.synthetic import draw_answers
from eddyline.testing.texts import (
    REAL_PREDICATES,
    TextPredicate,
    generate_texts,
    read_newsgroups,
    word_predicate,
    write_parquet,
)

PHASES = 8
STEPS = 4
CLOSE_TIMES = 3
WORDS = 160
COST_SAMPLE = 4_000


#: From a DataFrame to the rows of it that are kept.
Filter = Callable[[Any], Any]


class Case:
    """Texts and predicates, the true answers, true costs, and the best static order."""

    def __init__(
        self, name: str, texts: Sequence[str], predicates: Sequence[TextPredicate], folder: str
    ) -> None:
        self.name = name
        self.predicates = list(predicates)
        self.path = write_parquet(texts, pathlib.Path(folder) / name.replace(" ", "_"))
        self.rows = len(texts)
        self.drops = ~np.array([[p(text) for p in predicates] for text in texts])
        self.kept = int((~self.drops.any(axis=1)).sum())
        sample = np.arange(0, len(texts), max(1, len(texts) // COST_SAMPLE))
        each_us = _cost_of_each_us(predicates, [texts[i] for i in sample.tolist()])
        self.cost_us = each_us.mean(axis=0)
        self.plain_us = float(self.cost_us.sum())
        self.best_us, self.best = min(
            (_evaluated_us(order, self.drops[sample], each_us), order)
            for order in itertools.permutations(range(len(predicates)))
        )


def run(bench: Bench) -> None:
    """Measure everything, or one case only, and note it in the benchmark."""
    with tempfile.TemporaryDirectory(prefix="eddyline-bench-") as folder:
        parts = {
            "stationary": lambda: _measure(bench, folder, _stationary),
            "correlated": lambda: _measure(bench, folder, _correlated),
            "drifting": lambda: _measure(bench, folder, _drifting),
            "one": lambda: _measure_one_predicate(bench, folder),
            "cheap": lambda: cheap(bench, folder),
            "memory": lambda: _measure_memory(bench, folder),
        }
        if bench.data is not None:
            parts["newsgroups"] = lambda: _measure(bench, folder, _newsgroups)
        bench.run_parts(parts)


# --- the data --------------------------------------------------------------------------------


def _stationary(bench: Bench, folder: str) -> Case:
    rng = np.random.default_rng(bench.seed)
    answers = draw_answers(
        rng, 480_000 // _scale(bench), [0.9, 0.8, 0.7, 0.5, 0.3, 0.1], correlation=1
    )
    predicates = [word_predicate(n, extra_scans=s) for n, s in enumerate((1, 2, 1, 2, 1, 1))]
    return Case("stationary", generate_texts(rng, answers, WORDS), predicates, folder)


def _correlated(bench: Bench, folder: str) -> Case:
    rng = np.random.default_rng(bench.seed)
    answers = draw_answers(
        rng, 160_000 // _scale(bench), [0.3] * 3 + [0.5] * 3, 3, same_answer=0.95
    )
    predicates = [word_predicate(n, extra_scans=1) for n in range(6)]
    return Case("correlated", generate_texts(rng, answers, WORDS), predicates, folder)


def _drifting(bench: Bench, folder: str) -> Case:
    """Make the best order change after every 1/8 of the rows that each task reads."""
    rng = np.random.default_rng(bench.seed)
    rows = 240_000 // _scale(bench)
    selective = rng.permutation(np.arange(PHASES) % 6)
    halves = []
    for _ in range(2):
        for phase in range(PHASES):
            selectivities = [0.9] * 6
            selectivities[selective[phase]] = 0.05
            selectivities[(selective[phase] + 1) % 6] = 0.5
            halves.append(draw_answers(rng, rows // (2 * PHASES), selectivities, correlation=1))
    predicates = [word_predicate(n, extra_scans=1) for n in range(6)]
    return Case("drifting", generate_texts(rng, np.concatenate(halves), WORDS), predicates, folder)


def _newsgroups(bench: Bench, folder: str) -> Case:
    assert bench.data is not None
    texts = read_newsgroups(bench.data) * (2 if bench.quick else 12)
    return Case("20 newsgroups", texts, REAL_PREDICATES, folder)


def _scale(bench: Bench) -> int:
    return 4 if bench.quick else 1


# --- the variants ----------------------------------------------------------------------------


def _spark_filter(df: Any, predicates: Sequence[TextPredicate]) -> Any:
    from pyspark.sql import functions as F

    condition = None
    for predicate in predicates:
        each = F.udf(predicate, "boolean")("text")
        condition = each if condition is None else condition & each
    return df.filter(condition)


def _iterator_chain(df: Any, predicates: Sequence[TextPredicate]) -> Any:
    from pyspark.sql import functions as F

    def make(predicate: TextPredicate) -> Any:
        def judge(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
            for texts in batches:
                yield pa.array([predicate(text) for text in texts.to_pylist()], pa.bool_())

        return F.arrow_udf(judge, "boolean")

    for predicate in predicates:
        df = df.filter(make(predicate)("text"))
    return df


def _hand_written(df: Any, predicates: Sequence[TextPredicate]) -> Any:
    """What a user who knows the best order writes: one Arrow UDF, Python's own `and`."""
    from pyspark.sql import functions as F

    names = [f"p{i}" for i in range(len(predicates))]
    source = (
        "def judge(texts: pa.Array) -> pa.Array:\n"
        f"    return pa.array([{' and '.join(f'{name}(text)' for name in names)}\n"
        "                     for text in texts.to_pylist()], pa.bool_())\n"
    )
    scope: dict[str, Any] = {"pa": pa, **dict(zip(names, predicates, strict=True))}
    exec(source, scope)
    return df.filter(F.arrow_udf(scope["judge"], "boolean")("text"))


def _eddyline(predicates: Sequence[TextPredicate]) -> Where:
    return where(*[udf(p, "text") for p in predicates], seed=0)


# --- the measurements ------------------------------------------------------------------------


def _measure(bench: Bench, folder: str, make_case: Callable[[Bench, str], Case]) -> None:
    with bench.progress(f"making data: {make_case.__name__.strip('_')}", 1) as advance:
        case = make_case(bench, folder)
        advance()
    written = case.predicates
    best = [case.predicates[i] for i in case.best]
    df = local_spark().read.parquet(case.path)
    filters = {
        "plain": lambda: _spark_filter(df, written),
        "chain as written": lambda: _iterator_chain(df, written),
        "chain in best order": lambda: _iterator_chain(df, best),
        "hand-written": lambda: _hand_written(df, best),
        "el.where": lambda: df.transform(_eddyline(written)),
        "hand-written again": lambda: _hand_written(df, best),
    }
    for name, make in filters.items():
        counted = make().count()
        assert counted == case.kept, f"{case.name}, {name}: {counted} rows instead of {case.kept}"
    runs: dict[str, Callable[[], object]] = {n: to_noop(make) for n, make in filters.items()}
    close = dict.fromkeys(("hand-written", "el.where", "hand-written again"), CLOSE_TIMES)
    seconds = bench.in_turn(case.name, runs, is_warm=True, times=close)
    hand_written = mean_of(seconds["hand-written"], seconds["hand-written again"])
    possible = case.plain_us / case.best_us
    speedup = ratio(seconds["plain"], by_round(seconds["el.where"], CLOSE_TIMES))
    speedup_by_hand = ratio(seconds["plain"], by_round(hand_written, CLOSE_TIMES))
    about = f"{case.name}, {case.rows:,} rows"
    plain_s = statistics.median(seconds["plain"])
    plain = f"time of df.filter(u1 & u2 & ...): {plain_s:.1f} s"
    bench.add(f"{about}: Spark's filter / el.where", speedup, "x", plain)
    fewer = f"evaluations, weighted by cost: {possible:.2f} times fewer"
    share = f"{about}: the same as a share of what the best static order saves"
    bench.add(share, speedup / possible, "share", fewer)
    share = f"{about}: the same share for the hand-written UDF in that order"
    bench.add(share, speedup_by_hand / possible, "share", fewer)
    hand_s = statistics.median(hand_written)
    hand = f"one hand-written Arrow UDF in the best static order ({hand_s:.1f} s)"
    slower = ratio(seconds["el.where"], hand_written)
    bench.add(f"{about}: el.where / hand-written", slower, "x", hand)
    for name, label in (
        ("chain as written", "chain of iterator UDFs as written"),
        ("chain in best order", "chain of iterator UDFs in the best order"),
    ):
        slower = ratio(seconds[name], by_round(hand_written, CLOSE_TIMES))
        bench.add(f"{about}: {label} / hand-written", slower, "x", hand)
    control = ratio(seconds["hand-written again"], seconds["hand-written"])
    bench.add(f"{about}: hand-written / hand-written (control)", control, "x", "the same again")
    _count(bench, df, case, about)


def _in_steps(make: Callable[[], Filter], paths: Sequence[str]) -> Callable[[], Iterator[None]]:
    """Return how to begin a run over all data, a job for each of the paths.

    Filters that are compared take their steps in turn, so that a noisy neighbour of seconds hits
    all of them. Only the first step plans its query within the measured time: in one job over all
    the data it would be planned once, too.
    """
    spark = local_spark()

    def begin() -> Iterator[None]:
        judge = make()
        planned = [judge(spark.read.parquet(path)) for path in paths[1:]]
        return steps(judge, planned)

    def steps(judge: Filter, planned: Sequence[Any]) -> Iterator[None]:
        run_to_noop(judge(spark.read.parquet(paths[0])))
        yield
        for df in planned:
            run_to_noop(df)
            yield

    return begin


def _count(bench: Bench, df: Any, case: Case, about: str) -> None:
    """Count evaluations, weighted by cost, against the best static order."""
    f = _eddyline(case.predicates)
    run_to_noop(df.transform(f))
    report = f.report()
    done_us = sum(
        (line.seen + line.profiled) * cost
        for line, cost in zip(report.lines, case.cost_us, strict=True)
    )
    best_us = ordering_cost(case.best, case.drops, case.cost_us) * case.rows
    bench.add(
        f"{about}: evaluations weighted by cost, el.where / best static order",
        done_us / best_us,
        "x",
        "counted, learning included",
    )
    bench.add(f"{about}: routing and learning", 100 * report.overhead, "% of time in Python")


def _measure_one_predicate(bench: Bench, folder: str) -> None:
    """Nothing to gain: a predicate in Python, and one of Arrow's that takes next to no time."""
    import pyarrow.compute as pc
    from pyspark.sql import functions as F

    local_spark()  # a UDF cannot be declared without
    rng = np.random.default_rng(bench.seed)
    has_word = word_predicate(0, extra_scans=1)

    @F.arrow_udf("boolean")
    def in_python(texts: pa.Array) -> pa.Array:
        return pa.array([has_word(text) for text in texts.to_pylist()], pa.bool_())

    @F.arrow_udf("boolean")
    def vectorised(texts: pa.Array) -> pa.Array:
        return pc.match_substring(texts, "land")

    long = generate_texts(rng, rng.random((20_000, 1)) < 0.5, WORDS) * (48 // _scale(bench))
    _measure_one(bench, folder, "in Python", in_python, long)
    short = generate_texts(rng, np.zeros((20_000, 1), dtype=bool), words=8)
    _measure_one(bench, folder, "vectorised", vectorised, short * (2_400 // _scale(bench)))


def _measure_one(bench: Bench, folder: str, kind: str, predicate: Any, texts: list[str]) -> None:
    share = -(-len(texts) // STEPS)
    top = pathlib.Path(folder) / kind.replace(" ", "_")
    paths = [
        write_parquet(texts[step * share : (step + 1) * share], top / f"step-{step}")
        for step in range(STEPS)
    ]
    plain = _in_steps(lambda: lambda df: df.filter(predicate("text")), paths)
    eddyline = _in_steps(lambda: where(udf(predicate, "text")), paths)
    runs = {"plain": plain, "el.where": eddyline, "again": plain}
    seconds = bench.step_by_step(f"one predicate, {kind}", runs)
    each_us = 1e6 * statistics.median(seconds["plain"]) / len(texts)
    about = f"one predicate, {kind}, {len(texts):,} rows"
    baseline = f"the same arrow_udf in df.filter: {each_us:.2f} us a row"
    both = mean_of(seconds["plain"], seconds["again"])
    bench.add(f"{about}: el.where / plain", ratio(seconds["el.where"], both), "x", baseline)
    bench.add(
        f"{about}: plain / plain (control)",
        ratio(seconds["again"], seconds["plain"]),
        "x",
        baseline,
    )


def _measure_memory(bench: Bench, folder: str) -> None:
    """Let two workers judge many rows; compare their memory early and late."""
    log = pathlib.Path(folder) / "memory"
    log.mkdir()
    rows = 10_000_000 // (10 if bench.quick else 1)

    def small(number: int) -> bool:
        if number % 500_000 == 0:
            import os
            import resource

            used_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            with open(f"{log}/{os.getpid()}", "a") as out:
                out.write(f"{number} {used_kib}\n")
        return number % 3 == 0

    def even(number: int) -> bool:
        return number % 2 == 0

    with bench.progress(f"memory over {rows:,} rows", 1) as advance:
        df = local_spark().range(0, rows, 1, 2)
        run_to_noop(df.transform(where(udf(small, "id"), udf(even, "id"), policy="auto")))
        advance()
    growth_mib = []
    for path in log.iterdir():
        used = [int(line.split()[1]) for line in path.read_text().splitlines()]
        if len(used) >= 4:
            growth_mib.append((used[-1] - used[len(used) // 4]) / 1024)
    bench.add(
        f"growth of a worker's peak memory over the last 3/4 of {rows:,} rows",
        max(growth_mib, default=0.0),
        "MiB",
        "peak resident memory of the worker process",
    )


def _cost_of_each_us(predicates: Sequence[TextPredicate], texts: Sequence[str]) -> FloatArray:
    """Return what each predicate costs on each text: the least of three calls.

    Text by text, so that a neighbour on the machine does not make one predicate dearer than others.
    """
    cost_ns = np.full((len(texts), len(predicates)), np.iinfo(np.int64).max)
    for _ in range(3):
        for row, text in enumerate(texts):
            for number, predicate in enumerate(predicates):
                began = time.perf_counter_ns()
                predicate(text)
                spent = time.perf_counter_ns() - began
                cost_ns[row, number] = min(cost_ns[row, number], spent)
    return cost_ns / 1e3


def _evaluated_us(order: Sequence[int], drops: BoolArray, each_us: FloatArray) -> float:
    """Return the evaluations a row needs in the order, each weighted by its own cost.

    Not by the mean cost of its predicate: the texts that pass one predicate may be the long ones,
    and dear for the next.
    """
    alive = np.ones(len(drops), dtype=bool)
    spent_us = 0.0
    for filter_ in order:
        spent_us += float(each_us[alive, filter_].sum())
        alive &= ~drops[:, filter_]
    return spent_us / len(drops)
