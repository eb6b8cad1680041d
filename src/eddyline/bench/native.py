"""`eddyline bench native`: classes of rows on Spark, in the JVM and in Python.

Costly predicates of Spark's own (regular expressions, JSON) over rows of several kinds, each with
another best order: as written, in the best static order, as a mesh compiled into one Column, and in
the Python plane. With `--data` also over 20 Newsgroups and over the network connections of KDD Cup
1999. Native conditions are compared by CPU time: others who use the machine hardly change it.
"""

from __future__ import annotations

import functools
import gzip
import pathlib
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.arrays import BoolArray
from eddyline.bench.cpu_time import cpu_seconds
from eddyline.bench.harness import Bench, local_spark, mean_of, ratio, to_noop
from eddyline.errors import EddylineError
from eddyline.mesh import MeshOptions
from eddyline.ordering.static import best_ordering
from eddyline.spark.common.predicates import udf
from eddyline.spark.where.where import where
from eddyline.testing.texts import TextPredicate, read_newsgroups, three_kinds, write_table

WORDS = 120
OPERATORS = 6


def run(bench: Bench) -> None:
    """Measure everything and note it in the benchmark."""
    spark = local_spark()
    with tempfile.TemporaryDirectory(prefix="eddyline-bench-") as folder:
        kinds = functools.cache(lambda: _three_kinds(bench, pathlib.Path(folder)))
        parts = {
            "kinds": lambda: _measure_native(
                bench, spark.read.parquet(kinds()[0]), "three kinds of rows", _marker_conditions()
            ),
            "digests": lambda: _measure_native(
                bench, _digests(spark, bench.quick), "three classes of digests", _DIGEST_CONDITIONS
            ),
            "python": lambda: _measure_python(bench, spark.read.parquet(kinds()[0]), kinds()[1]),
        }
        if (data := bench.data) is not None:
            copies = 1 if bench.quick else 4
            parts["news"] = lambda: _measure_native(
                bench,
                spark.read.parquet(_newsgroups(data, pathlib.Path(folder) / "news", copies)),
                "20 newsgroups",
                _NEWS_CONDITIONS,
            )
            parts["kdd"] = lambda: _measure_native(
                bench,
                spark.read.parquet(_kddcup(data, pathlib.Path(folder) / "kdd", copies)),
                "KDD Cup 1999",
                _KDD_CONDITIONS,
            )
        bench.run_parts(parts)
    spark.stop()


def _three_kinds(bench: Bench, folder: pathlib.Path) -> tuple[str, BoolArray]:
    rows = 480_000 // (16 if bench.quick else 1)
    with bench.progress("making data: three kinds of rows", 1) as advance:
        rng = np.random.default_rng(bench.seed)
        made = three_kinds(rng, rows, folder / "kinds", WORDS)
        advance()
    return made


# --- data ------------------------------------------------------------------------------------


def _marker_conditions() -> list[str]:
    """Count markers: costs the same whether there are any or not."""
    return [rf"regexp_count(text, '\\b[a-z]*mark{n}\\b') > 0" for n in range(OPERATORS)]


def _marker_predicate(number: int) -> TextPredicate:
    """Return the same condition as a Python function."""
    pattern = re.compile(rf"\b[a-z]*mark{number}\b")

    def has_marker(text: str) -> bool:
        return len(pattern.findall(text)) > 0

    has_marker.__name__ = f"has_mark{number}"
    return has_marker


def _newsgroups(data: pathlib.Path, folder: pathlib.Path, copies: int) -> str:
    texts = read_newsgroups(data) * copies
    lengths = ["long" if len(text) > 1_500 else "short" for text in texts]
    is_reply = ["In article" in text[:300] or "writes:" in text[:300] for text in texts]
    columns = {"length": lengths, "is_reply": is_reply, "text": texts}
    write_table(pa.table(columns), folder)
    return str(folder)


_NEWS_CONDITIONS = [
    r"text rlike '(?i)\\b(who|what|why|how|when|where)\\b[^.?!]{3,80}\\?'",
    r"text rlike '(\\$|USD)\\s?\\d[\\d,.]*|\\b\\d+(\\.\\d+)+\\b'",
    r"not text rlike '(?m)^\\s*[>|:]'",
    r"text rlike '(?i)[a-z0-9._-]+@[a-z0-9-]+\\.[a-z.]{2,}'",
    r"length(regexp_replace(text, '[^A-Z]', '')) < 0.05D * length(text)",
]


def _kddcup(data: pathlib.Path, folder: pathlib.Path, copies: int) -> str:
    """Write the connections: protocol, service, flag, and the whole record as JSON."""
    found = sorted(
        p for base in (data / "kddcup99", data) if base.is_dir() for p in base.glob("kdd*.gz")
    )
    if not found:
        raise EddylineError(
            f"no kdd*.gz in {data} nor in its folder kddcup99; "
            f"--data takes the folder that holds the connections"
        )
    with gzip.open(found[0], "rt") as lines:
        records = [line.rstrip().split(",") for line in lines]
    records *= copies
    names = ("protocol", "service", "flag")
    columns: dict[str, Any] = {name: [r[1 + n] for r in records] for n, name in enumerate(names)}
    columns["record"] = [
        '{"src":' + r[4] + ',"dst":' + r[5] + ',"fields":"' + ",".join(r[:41]) + '"}'
        for r in records
    ]
    write_table(pa.table(columns), folder)
    return str(folder)


_KDD_CONDITIONS = [
    r"get_json_object(record, '$.src') rlike '^[1-9][0-9]{2,}$'",
    r"get_json_object(record, '$.dst') rlike '^[1-9][0-9]*$'",
    r"record rlike '(,0\\.00){8,}'",
    r"get_json_object(record, '$.fields') rlike ',SF,[0-9]+,[0-9]+,0,0,'",
    r"record rlike ',(25[0-5]|2[0-4][0-9]|1[0-9]{2}),[0-9]+,1\\.00'",
]


def _digests(spark: Any, is_quick: bool) -> Any:
    """Return numbers in three classes."""
    return spark.range(20_000 if is_quick else 6_000_000).selectExpr("id", "id % 3 AS c")


#: Each drops nearly all rows of one class, and few of the others.
_DIGEST_CONDITIONS = [
    f"substring(sha2(concat_ws('-', {n}, cast(id AS string)), 512), 1, 2) "
    f"< CASE WHEN c = {n} THEN '0d' ELSE 'e6' END"
    for n in range(3)
]


# --- the measurements ------------------------------------------------------------------------


def _filtered(df: Any, conditions: Sequence[str]) -> Any:
    for condition in conditions:
        df = df.filter(condition)
    return df


def _best_static(df: Any, conditions: Sequence[str]) -> list[str]:
    """Return the conditions in the best order there is, by what they cost and drop on this data."""
    from pyspark.sql import functions as F

    from eddyline.spark.native.pilot import pilot_sample
    from eddyline.spark.native.timing import time_conditions

    columns = [F.expr(condition) for condition in conditions]
    sample = pilot_sample(df, 4_000, seed=1)
    answers = sample.select(*[F.coalesce(c, F.lit(False)) for c in columns]).toArrow()
    passed = np.array([column.to_pylist() for column in answers.columns], dtype=bool).T
    cost_us = np.array(time_conditions(sample, columns, answers.num_rows).cost_us)
    return [conditions[n] for n in best_ordering(~passed, cost_us)]


def _measure_native(bench: Bench, df: Any, about: str, conditions: Sequence[str]) -> None:
    best = _best_static(df, conditions)
    label = f"{about}, native"
    expected = _filtered(df, conditions).count()
    limited = where(*conditions, policy="mesh", seed=0)
    began, cpu_began_s = time.perf_counter(), _spent_s()
    df.transform(limited)
    planned_s, planned_cpu_s = time.perf_counter() - began, _spent_s() - cpu_began_s
    bench.add(
        f"{label}: planning with the default limit",
        planned_s,
        "s",
        f"the limit is {MeshOptions().planning_s_max:g} s; {_outcome(limited)}; "
        f"{planned_cpu_s:.2f} s of CPU time",
    )
    # Learns once, as long as it takes on this machine; what is timed is the run.
    f = where(*conditions, policy=MeshOptions(planning_s_max=None), seed=0)
    compiled = df.transform(f)
    counted = compiled.count()
    assert counted == expected, f"{about}: {counted} rows instead of {expected}"
    runs = {
        "as written": to_noop(lambda: _filtered(df, conditions)),
        "best static order": to_noop(lambda: _filtered(df, best)),
        "mesh": to_noop(lambda: df.transform(f)),
        "limited": to_noop(lambda: df.transform(limited)),
        "again": to_noop(lambda: _filtered(df, best)),
    }
    seconds = bench.in_turn(about, runs, clock=_spent_s)
    static = mean_of(seconds["best static order"], seconds["again"])
    for name, filter_, planning in (
        ("mesh", f, "planned without a limit"),
        ("limited", limited, "planned with the default limit"),
    ):
        bench.add(
            f"{label}: best static order / mesh, {planning}",
            ratio(static, seconds[name]),
            "x",
            _outcome(filter_),
        )
        bench.add(
            f"{label}: as written / mesh, {planning}",
            ratio(seconds["as written"], seconds[name]),
            "x",
            "df.filter(...).filter(...)",
        )
    bench.add(
        f"{label}: as written / mesh and its planning with the default limit",
        ratio(seconds["as written"], [each + planned_cpu_s for each in seconds["limited"]]),
        "x",
        f"a query of {statistics.median(seconds['as written']):.1f} s as written",
    )
    bench.add(
        f"{label}: best static order / itself (control)",
        ratio(seconds["again"], seconds["best static order"]),
        "x",
        "the same again",
    )


def _spent_s() -> float:
    """Return the CPU time so far, of Spark and of this process; where it is not known, the time."""
    spent_s = cpu_seconds()
    return time.perf_counter() if spent_s is None else spent_s


def _outcome(filter_: Any) -> str:
    """Say what planning came to."""
    report = filter_.report()
    if report.classes:
        return f"{len(report.classes)} classes"
    is_reordered = any(line.written != line.order for line in report.native_orders)
    return "no classes: another order" if is_reordered else "no classes: the written order"


def _measure_python(bench: Bench, df: Any, passed: BoolArray) -> None:
    from pyspark.sql import functions as F

    predicates = [_marker_predicate(n) for n in range(OPERATORS)]
    order = best_ordering(~passed, np.ones(OPERATORS))
    in_order = [predicates[n] for n in order]

    def judge(texts: pa.Array) -> pa.Array:
        return pa.array([all(p(text) for p in in_order) for text in texts.to_pylist()], pa.bool_())

    judge.__annotations__ = {"texts": pa.Array, "return": pa.Array}
    hand = F.arrow_udf(judge, "boolean")
    given = [udf(p, "text") for p in predicates]
    runs = {
        "best static order": to_noop(lambda: df.filter(hand("text"))),
        "auto": to_noop(lambda: df.transform(where(*given, seed=0))),
        "one order": to_noop(lambda: df.transform(where(*given, policy="agreedy", seed=0))),
        "again": to_noop(lambda: df.filter(hand("text"))),
    }
    kept = int(passed.all(axis=1).sum())
    counted = df.transform(where(*given, seed=0)).count()
    assert counted == kept, f"{counted} rows instead of {kept}"
    seconds = bench.in_turn("three kinds of rows, Python predicates", runs)
    label = "three kinds of rows, Python predicates"
    static = mean_of(seconds["best static order"], seconds["again"])
    bench.add(
        f"{label}: best static order (hand-written UDF) / auto",
        ratio(static, seconds["auto"]),
        "x",
        "learning included",
    )
    bench.add(
        f"{label}: one adaptive order / auto",
        ratio(seconds["one order"], seconds["auto"]),
        "x",
        "A-Greedy",
    )
    bench.add(
        f"{label}: best static order / itself (control)",
        ratio(seconds["again"], seconds["best static order"]),
        "x",
        "the same again",
    )
