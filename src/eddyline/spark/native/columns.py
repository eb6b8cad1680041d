"""The JVM plane: a mesh over Spark's own predicates, compiled into one Column.

A mesh becomes nested conditionals: the tests of its tree choose a route, and a route is a chain of
`if(p2, if(p1, ..., false), false)`. Not `p2 AND p1`: Spark's optimizer takes branches that are
equal up to the order of AND for the same, and merges them into one order.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from eddyline.attributes.screening import NOT_WORTH_ITS_COST, screen_attribute
from eddyline.fabric.rtoken import certain
from eddyline.mesh import Mesh, MeshOptions, Progress, SearchResult, TrainingSet, find_mesh
from eddyline.mesh.split import Split
from eddyline.mesh.tree import Node
from eddyline.spark.common.predicates import NativePredicate, without_literals

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TIMING_ROWS_FIRST = 30_000
TIMING_ROWS_MAX = 1_000_000
TIMING_SECONDS = 0.04
TIMING_ROUNDS = 2

_HARMLESS = frozenset(
    "and or not in between is null like ilike rlike regexp case when then else end if coalesce nvl "
    "ifnull nullif isnull isnotnull isnan greatest least length char_length character_length "
    "octet_length lower upper lcase ucase trim ltrim rtrim btrim substring substr left right instr "
    "locate position concat concat_ws replace translate reverse repeat lpad rpad initcap ascii "
    "startswith endswith contains regexp_like regexp_count regexp_extract regexp_replace "
    "regexp_instr regexp_substr get_json_object md5 sha sha1 sha2 crc32 xxhash64 hash soundex "
    "levenshtein bit_length array_contains size".split()
)
_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\(")
_RISKY_OPERATOR = re.compile(r"[-+*/%\[\]]|::|\b(?:div|mod)\b", re.IGNORECASE)
_PATTERN_FROM_COLUMN = re.compile(
    r"\b(?:rlike|regexp)\s+[\w`]|\b(?:rlike|regexp_\w+)\s*\([^,()]*,\s*[\w`]", re.IGNORECASE
)
_CAST_TARGET = re.compile(r" as ([a-z]\w*)", re.IGNORECASE)


def may_raise(df: DataFrame, predicate: NativePredicate) -> bool:
    """Say whether a condition of Spark's could fail on some row, as far as its text tells.

    Such a condition keeps its written place: one written before it may be there to protect it.
    Arithmetic can overflow and casts can fail, also those that Spark adds to make types fit, and a
    function that is not known to be harmless is taken for one that is not. In a Column, the text
    of a literal cannot be told from the rest; SQL text is read more exactly.
    """
    text = without_literals(predicate.name)
    if _RISKY_OPERATOR.search(text) or _PATTERN_FROM_COLUMN.search(text):
        return True
    if any(name.lower() not in _HARMLESS for name in _CALL.findall(text)):
        return True
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        df.filter(predicate.column()).explain(extended=True)
    analysed = printed.getvalue().split("== Optimized")[0].split("== Analyzed")[-1]
    filters = [line for line in analysed.splitlines() if line.lstrip("+- :").startswith("Filter")]
    targets = {name.lower() for line in filters[:1] for name in _CAST_TARGET.findall(line)}
    return not filters or bool(targets - {"string", "binary"})


def learn_native(
    sample: DataFrame,
    conditions: Sequence[Column],
    attributes: Mapping[str, Column],
    options: MeshOptions,
    seed: int | None,
    progress: Progress | None = None,
) -> tuple[SearchResult, TrainingSet, dict[str, str]]:
    """Evaluate all conditions on the sample, time each of them, and search for a mesh.

    Returns
    -------
    found
        What the search came to.
    training
        The sample, with drops and costs.
    rejected
        Attributes that were not looked at, and why.

    """
    answers = [
        F.coalesce(condition, F.lit(False)).alias(f"_{n}") for n, condition in enumerate(conditions)
    ]
    named = [column.alias(f"a{n}") for n, column in enumerate(attributes.values())]
    table = sample.select(*named, *answers).toArrow().combine_chunks()
    columns: dict[str, pa.Array] = {}
    rejected: dict[str, str] = {}
    for number, name in enumerate(attributes):
        values = _plain(table.column(number))
        why = screen_attribute(values)
        if why is None:
            columns[name] = values
        else:
            rejected[name] = why
    passed = np.stack(
        [
            _plain(table.column(len(named) + n)).to_numpy(zero_copy_only=False)
            for n in range(len(conditions))
        ],
        axis=1,
    ).astype(bool)
    cost_us = (
        time_conditions(sample, conditions, table.num_rows)
        if table.num_rows
        else [1.0] * len(conditions)
    )
    training = TrainingSet(columns, ~passed, cost_us)
    found = find_mesh(training, options, seed, progress)
    used = found.mesh.tree.attributes if found.mesh else []
    rejected |= {name: NOT_WORTH_ITS_COST for name in columns if name not in used}
    return found, training, rejected


def time_conditions(sample: DataFrame, conditions: Sequence[Column], rows: int) -> list[float]:
    """Return microseconds a row of each condition, from runs over the sample.

    A run is repeated over ever more copies of the sample, until it takes long enough to be told
    from the time that a job takes anyway.
    """
    spark = sample.sparkSession
    kept = F.broadcast(sample)

    def seconds(column: Column, copies: int) -> float:
        many = spark.range(copies).withColumnRenamed("id", "_copy").crossJoin(kept)
        best = float("inf")
        for _ in range(TIMING_ROUNDS):
            began = time.perf_counter()
            many.agg(F.sum(F.when(column, F.col("_copy")))).collect()
            best = min(best, time.perf_counter() - began)
        return best

    nothing: dict[int, float] = {}

    def cost_us(condition: Column) -> float:
        copies = max(1, TIMING_ROWS_FIRST // rows)
        while True:
            if copies not in nothing:
                nothing[copies] = seconds(F.col("_copy") >= 0, copies)
            spent = seconds(condition, copies) - nothing[copies]
            if spent > TIMING_SECONDS or copies * rows >= TIMING_ROWS_MAX:
                # Even the cheapest condition costs something.
                return max(1e-3, spent * 1e6 / (copies * rows))
            copies *= 4

    for condition in conditions:  # the JVM compiles what it has run some times
        seconds(condition, max(1, TIMING_ROWS_FIRST // rows))
    return [cost_us(condition) for condition in conditions]


def mesh_to_column(
    mesh: Mesh,
    conditions: Sequence[Column],
    attributes: Mapping[str, Column],
    default: Sequence[int],
) -> Column:
    """Return a mesh as one condition; rows unlike all in the sample take the default order."""
    routed = _node_to_column(mesh.tree.root, mesh, conditions, attributes)
    for name, values in mesh.tree.known.items():
        column = attributes[name]
        met = F.coalesce(column.isin(*[_literal(v) for v in values]), F.lit(True))
        routed = F.when(met, routed).otherwise(route_to_column(default, conditions))
    return routed


def route_to_column(route: Sequence[Any], conditions: Sequence[Column]) -> Column:
    """Return a route as nested conditionals, which no optimizer reorders."""
    order = certain(tuple(route))
    chained = F.coalesce(conditions[order[-1]], F.lit(False))
    for number in reversed(order[:-1]):
        chained = F.when(conditions[number], chained).otherwise(F.lit(False))
    return chained


def _node_to_column(
    node: Node, mesh: Mesh, conditions: Sequence[Column], attributes: Mapping[str, Column]
) -> Column:
    if node.split is None or node.left is None or node.right is None:
        return route_to_column(mesh.classes[node.label].route, conditions)
    return F.when(
        split_to_column(node.split, attributes[node.split.attribute]),
        _node_to_column(node.left, mesh, conditions, attributes),
    ).otherwise(_node_to_column(node.right, mesh, conditions, attributes))


def split_to_column(split: Split, column: Column) -> Column:
    """Return a test of the tree as a condition that is never NULL."""
    if split.values is None:
        test = column <= _literal(split.at)
    elif split.values:
        test = column.isin(*[_literal(value) for value in split.values])
    else:
        test = F.when(column.isNotNull(), F.lit(False))
    return F.coalesce(test, F.lit(split.null_left))


def _literal(value: Any) -> Column:
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return F.lit(value.isoformat(sep=" ")).cast("timestamp_ntz")
    return F.lit(value)


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
