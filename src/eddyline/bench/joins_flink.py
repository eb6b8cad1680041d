"""A chain of interval joins in Flink against an engine: four streams, one key.

Both read the same rows as CSV, and both store their results. Flink runs in a process of its own,
as its packages and ours exclude each other, on two slots, with its state on the heap and without
checkpoints: it is faster than one that would survive a failure, as the engine does.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.bench.harness import Bench, local_spark, ratio
from eddyline.bench.joins_case import JoinCase, Side, Streams
from eddyline.bench.joins_runs import Contest, Outcome, checksum_of, run_engine
from eddyline.bench.joins_versus import ROUNDS_MAX, check_same
from eddyline.errors import EddylineError

STREAMS = 4
WINDOW_MS = 1_500
FLINK_S_MAX = 600
_HOW = (
    "make an environment with it (python3 -m venv flinkenv; flinkenv/bin/pip install apache-flink) "
    "and name its interpreter: --flink flinkenv/bin/python. Flink needs Java 11 or 17"
)
_JOB = pathlib.Path(__file__).with_name("flink_job.py")
#: A table of Flink that discards its rows.
DISCARD = "'connector' = 'blackhole'"
COLUMNS = tuple(f"v{n}" for n in range(STREAMS))


@dataclass(frozen=True)
class Size:
    """Rows of a stream in each micro-batch, and number of micro-batches."""

    rows: int
    batches: int


WINDOWED = Size(20_000, 6)
#: Tells the cost of results from the fixed cost of a micro-batch.
WINDOWED_LARGE = Size(60_000, 6)
#: A join that keeps every row compares more with each micro-batch.
UNWINDOWED = Size(2_000, 4)
QUICK = Size(200, 4)


@dataclass(frozen=True)
class Request:
    """What a Flink process is to run.

    Parameters
    ----------
    sources
        CSV file of each stream.
    sql, columns
        The query, and the names of its columns, all whole numbers.
    results, sink
        Folder for results, and the options of the table that takes them.
    is_timed
        Whether streams have an event time.
    runs
        How often it is run.
    settings
        Settings of Flink.
    parallelism
        Number of slots.

    """

    sources: Mapping[str, str]
    sql: str
    columns: Sequence[str]
    results: str
    sink: str
    is_timed: bool
    runs: int
    settings: Mapping[str, str] = field(default_factory=dict)
    parallelism: int = 2


@dataclass(frozen=True)
class Answer:
    """What a Flink process ran.

    Parameters
    ----------
    version
        Of Flink.
    seconds
        Of each run, from the job's creation in the cluster to its end.
    operators
        Names of the joins in its plan.

    """

    version: str
    seconds: list[float]
    operators: list[str]


def is_asked_for(bench: Bench) -> bool:
    """Whether to run this part: PyFlink is there, or the part was named."""
    has_flink = bench.flink is not None or importlib.util.find_spec("pyflink") is not None
    return has_flink or bench.only == "flink"


def find_flink(given: pathlib.Path | None) -> str:
    """Return an interpreter that has PyFlink; raise if there is none, with the way to get it."""
    if given is None:
        if importlib.util.find_spec("pyflink") is None:
            raise EddylineError(f"this interpreter has no PyFlink; {_HOW}")
        return sys.executable
    try:
        subprocess.run([str(given), "-c", "import pyflink"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise EddylineError(f"{given} is no interpreter that has PyFlink; {_HOW}") from error
    return str(given)


def run_flink(python: str, request: Request, folder: pathlib.Path) -> Answer:
    """Run a request in a process of its own."""
    path = folder / "request.json"
    path.write_text(json.dumps(dataclasses.asdict(request)))
    command = [python, str(_JOB), str(path)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FLINK_S_MAX, check=True
        )
    except subprocess.TimeoutExpired as error:
        raise EddylineError(f"Flink did not finish within {FLINK_S_MAX} s") from error
    except subprocess.CalledProcessError as error:
        last = "\n".join(str(error.stderr).strip().splitlines()[-5:])
        raise EddylineError(f"Flink failed:\n{last}") from error
    return Answer(**json.loads(done.stdout.strip().splitlines()[-1]))


def interval_sql(is_timed: bool) -> str:
    """Return the chain of joins, with windows on event times or on whole numbers alone.

    Flink takes one pair of bounds on event times for each join; windows against the other streams
    are compared as numbers.
    """
    joins = []
    for n in range(1, STREAMS):
        terms = [f"s{n}.k = s0.k"]
        timed = range(1) if is_timed else range(0)
        for other in timed:
            bound = f"INTERVAL '{WINDOW_MS / 1000:.3f}' SECOND"
            terms.append(f"s{n}.ts > s{other}.ts - {bound} AND s{n}.ts < s{other}.ts + {bound}")
        terms += [
            f"ABS(s{n}.t - s{other}.t) < {WINDOW_MS}" for other in range(n) if other not in timed
        ]
        joins.append(f"JOIN s{n} ON {' AND '.join(terms)}")
    items = ", ".join(f"s{n}.v AS {name}" for n, name in enumerate(COLUMNS))
    return f"SELECT {items} FROM s0 {' '.join(joins)}"


def _rows(stream: int, batch: int, size: Size) -> pa.Table:
    """Return rows of a micro-batch: every key twice, all at the same time."""
    ids = np.arange(size.rows)
    values = (stream * size.batches + batch) * size.rows + ids
    times = np.full(size.rows, 10**6 + 1000 * batch)
    return pa.table({"k": ids % (size.rows // 2), "v": values, "t": times})


def write_streams(folder: pathlib.Path, size: Size) -> tuple[Streams, dict[str, str]]:
    """Write the streams cut into micro-batches, and whole: Flink may read files in any order."""
    names = [f"s{n}" for n in range(STREAMS)]
    derived = {name: {"ts": "timestamp_millis(t)"} for name in names}
    cut = Streams(folder / "cut", derived, "csv")
    whole = Streams(folder / "whole", kind="csv")
    for number, name in enumerate(names):
        batches = [_rows(number, batch, size) for batch in range(size.batches)]
        cut.write(name, batches)
        whole.write(name, [pa.concat_tables(batches)])
    return cut, {name: str(folder / "whole" / name) for name in names}


def against_flink(bench: Bench) -> None:
    """Compare the time of a result: Flink's chain of interval joins, and its multi-way join."""
    python = find_flink(bench.flink)
    spark = local_spark()
    for is_timed, size in ((True, WINDOWED), (True, WINDOWED_LARGE), (False, UNWINDOWED)):
        with tempfile.TemporaryDirectory() as folder:
            own_size = QUICK if bench.quick else size
            _contend(bench, spark, python, pathlib.Path(folder), own_size, is_timed)


def _contend(
    bench: Bench, spark: Any, python: str, folder: pathlib.Path, size: Size, is_timed: bool
) -> None:
    """Run Flink's joins of a kind between runs of the engine."""
    streams, sources = write_streams(folder, size)
    sides = [Side(f"s{n}", f"s{n}", ("v",), WINDOW_MS) for n in range(STREAMS)]
    case = JoinCase("engine", sides, [("s0.k", f"s{n}.k") for n in range(1, STREAMS)])
    contest = Contest.of(case, streams, has_rival=False)
    rivals = _requests(sources, folder, 1 + min(bench.rounds, ROUNDS_MAX), is_timed)
    with bench.progress(f"Flink, {size.rows:,} rows", 3 + 3 * len(rivals)) as advance:

        def run_own() -> Outcome:
            outcome = run_engine(spark, contest, bench.seed)
            advance()
            return outcome

        run_own()  # Spark compiles code
        before = [run_own(), run_own()]
        for label, request in rivals.items():
            answer = run_flink(python, request, folder)
            advance()
            check_plan(label, request, answer)
            if request.sink != DISCARD:
                check_results(spark, label, request, before[0])
            after = [run_own(), run_own()]
            _add(bench, f"{label}, {size.rows:,} rows a micro-batch", answer, before, after)
            before = after


def _add(
    bench: Bench, label: str, answer: Answer, before: Sequence[Outcome], after: Sequence[Outcome]
) -> None:
    """Add the figure of a request, between two runs of the engine before it and two after it."""
    own_s = statistics.median(each.total_s for each in [*before, *after])
    control = ratio([each.total_s for each in after], [each.total_s for each in before])
    results = before[0].results
    bench.add(
        f"{STREAMS} streams, one key: time a result, Flink / engine; {label}",
        statistics.median(answer.seconds[1:]) / own_s,
        "x",
        f"engine {1e6 * own_s / results:.2f} us, {results:,} results; control {control:.2f}; "
        f"Flink {answer.version}",
    )


def _requests(
    sources: Mapping[str, str], folder: pathlib.Path, runs: int, is_timed: bool
) -> dict[str, Request]:
    results = str(folder / "flink")
    store = f"'connector' = 'filesystem', 'path' = '{results}', 'format' = 'csv'"
    settings = {"pipeline.object-reuse": "true"}  # rows are not copied between chained operators
    if not is_timed:
        settings["table.optimizer.multi-join.enabled"] = "true"
    request = Request(
        sources, interval_sql(is_timed), COLUMNS, results, store, is_timed, runs, settings
    )
    if not is_timed:
        return {"multi-way join, not windowed (it keeps every row)": request}
    return {
        "interval joins": request,
        "interval joins that discard their results": dataclasses.replace(request, sink=DISCARD),
    }


def check_plan(label: str, request: Request, answer: Answer) -> None:
    """Raise if Flink planned other joins than asked for."""
    operator = "IntervalJoin" if request.is_timed else "MultiJoin"
    if set(answer.operators) != {operator}:
        raise EddylineError(
            f"Flink {answer.version} plans {label} as {', '.join(answer.operators)} instead of "
            f"{operator}; use a version that has it"
        )


def check_results(spark: Any, label: str, request: Request, own: Outcome) -> None:
    """Raise if Flink stored other results than the engine."""
    schema = ", ".join(f"{name} long" for name in request.columns)
    count, checksum = checksum_of(spark.read.schema(schema).csv(request.results))
    stored = dataclasses.replace(own, results=count, checksum=checksum)
    check_same(f"Flink {label}", [own], [stored])
