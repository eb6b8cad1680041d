"""Conditions that stay plain filters in front of a mesh, so that Spark reads fewer rows.

Inside a CASE WHEN Spark sees neither partition filters nor filters that it can push down to the
source (`docs/decisions/0024`).
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from sqlglot import exp

from eddyline.spark.common.predicates import NativePredicate
from eddyline.spark.native.condition_tree import written_tree
from eddyline.sql.dialect import to_sql
from eddyline.sql.source_filters import conjuncts, suits_source

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PARTITION_FILTERS = re.compile(r"PartitionFilters: \[([^\n]*?)\](?:, PushedFilters|\n|$)")
#: Leaves of plans that read no files.
_WITHOUT_FILES = {"Range", "LocalRelation", "OneRowRelation", "LogicalRDD"}
_EXPRESSION_ID = re.compile(r"#\d+L?")


@dataclass(frozen=True)
class Front:
    """What is filtered before anything else.

    Parameters
    ----------
    filters
        The conditions; each is implied by one of the predicates.
    names
        Names of the predicates that are fulfilled wherever these conditions hold.

    """

    filters: tuple[Column, ...] = ()
    names: tuple[str, ...] = ()

    def apply(self, df: DataFrame) -> DataFrame:
        """Filter the DataFrame."""
        for condition in self.filters:
            df = df.filter(condition)
        return df


def find_front(df: DataFrame, predicates: Sequence[NativePredicate]) -> Front:
    """Return the conditions that let Spark read fewer rows of a DataFrame.

    Parameters
    ----------
    df
        The DataFrame.
    predicates
        Deterministic predicates that cannot fail on any row.

    """
    filters: list[Column] = []
    names: list[str] = []
    prunes = _PartitionPruning(df)
    for predicate in predicates:
        tree = written_tree(df, predicate)
        if tree is None:
            continue
        parts = list(conjuncts(tree))
        if len(parts) == 1:
            if suits_source(tree) or prunes(predicate.column()):
                filters.append(predicate.column())
                names.append(predicate.name)
            continue
        columns = [_as_column(df, part) for part in parts]
        chosen = [
            column
            for part, column in zip(parts, columns, strict=True)
            if column is not None and (suits_source(part) or prunes(column))
        ]
        if len(chosen) == len(parts):
            filters.append(predicate.column())
            names.append(predicate.name)
        else:
            filters += chosen
    return Front(tuple(filters), tuple(names))


def _as_column(df: DataFrame, part: exp.Expression) -> Column | None:
    """Return a part of a condition as a Column; None if Spark cannot resolve it by itself."""
    from pyspark.errors import AnalysisException, ParseException

    if any("\\" in literal.name for literal in part.find_all(exp.Literal)):
        return None  # how a backslash is written depends on settings of the session
    try:
        column = F.expr(to_sql(part))
        df.filter(column).schema  # noqa: B018  Connect analyses a plan only when asked for it
    except (AnalysisException, ParseException):
        return None
    return column


class _PartitionPruning:
    """Answers whether a condition leaves out whole partitions of the files of a DataFrame."""

    def __init__(self, df: DataFrame) -> None:
        self._df = df
        self._before: list[str] | None = None if _may_have_partitions(df) else []

    def __call__(self, condition: Column) -> bool:
        if self._before is None:
            self._before = _partition_filters(self._df)
        if not self._before:
            return False
        return _partition_filters(self._df.filter(condition)) != self._before


def _may_have_partitions(df: DataFrame) -> bool:
    """Whether a DataFrame may read partitioned files, as far as can be told without planning it."""
    if df.isStreaming:
        return False
    if not hasattr(df, "_jdf"):
        return True
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()
    return any(_may_be_partitioned(leaves.apply(n)) for n in range(leaves.size()))


def _may_be_partitioned(leaf: Any) -> bool:
    """Whether a leaf of an analysed plan may read partitioned files."""
    name = str(leaf.nodeName())
    if name != "LogicalRelation":
        return name not in _WITHOUT_FILES
    relation = leaf.relation()
    is_of_files = str(relation.getClass().getSimpleName()) == "HadoopFsRelation"
    return not is_of_files or int(relation.partitionSchema().size()) > 0


def _partition_filters(df: DataFrame) -> list[str]:
    """Return the partition filters of each scan of files."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        df.explain()
    plan = _EXPRESSION_ID.sub("", printed.getvalue())
    return _PARTITION_FILTERS.findall(plan)
