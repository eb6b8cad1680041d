"""Learning about native conditions: what they drop, what they cost, and the best mesh."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from eddyline.arrays import BoolArray, FloatArray
from eddyline.attributes.screening import NOT_WORTH_ITS_COST, screen_attribute
from eddyline.mesh import MeshOptions, SearchResult, TrainingSet, find_mesh
from eddyline.spark.common.planning import PlanningBudget
from eddyline.spark.native import clocked
from eddyline.spark.native.pilot import HELD_OUT, RANK, estimate_rows
from eddyline.spark.native.timing import TimedConditions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SEARCH_SHARE = 0.4
CLOCKED = "__eddyline_clocked"
#: Types whose values are the same, collected as rows or in Arrow.
_PLAIN_KINDS: Mapping[type[T.DataType], pa.DataType] = {
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.StringType: pa.string(),
    T.DateType: pa.date32(),
}


@dataclass(frozen=True)
class NativeLesson:
    """What sampled rows taught about native conditions.

    Parameters
    ----------
    result
        Of the search for a mesh; made from the rows that are not held out.
    training
        All sampled rows, with drops and costs.
    timed
        What the conditions cost, and whether that can be relied on.
    rejected
        Columns that cannot classify rows, and why.

    """

    result: SearchResult
    training: TrainingSet
    timed: TimedConditions
    rejected: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EvaluatedSample:
    """Sampled rows with the answers of native conditions.

    Parameters
    ----------
    columns
        Values of the columns that may classify rows.
    drops
        A line for each row and a column for each condition: whether it drops the row.
    held_out
        Which rows a mesh is not made from but judged on.
    rejected
        Columns that cannot classify rows, and why.
    text_lengths
        Mean length of the texts in each column of texts.
    query_rows
        About how many rows there are altogether, where the sample tells.
    durations_ns
        Where a clock was read: a line for each row, how long each condition took, and at last
        reading the clock.

    """

    columns: Mapping[str, pa.Array]
    drops: BoolArray
    held_out: BoolArray
    rejected: Mapping[str, str]
    text_lengths: Mapping[str, float]
    query_rows: float | None
    durations_ns: FloatArray | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.drops)


def evaluate_sample(
    sample: DataFrame,
    conditions: Sequence[Column],
    attributes: Mapping[str, Column],
    budget: PlanningBudget,
    is_clocked: bool = False,
) -> EvaluatedSample:
    """Evaluate all conditions on the sample; raises `OutOfTimeError` if it takes too long.

    Parameters
    ----------
    sample
        Sampled rows, with the flag `HELD_OUT`, and perhaps their `RANK`.
    conditions, attributes
        The conditions, and the columns that may classify rows.
    budget
        Limits the time.
    is_clocked
        Whether to read the clock between the conditions, if Spark lets one.

    """
    if is_clocked:
        with contextlib.suppress(PySparkException):  # some platforms do not allow to read a clock
            return _evaluate(sample, conditions, attributes, budget, is_clocked=True)
    return _evaluate(sample, conditions, attributes, budget, is_clocked=False)


def _evaluate(
    sample: DataFrame,
    conditions: Sequence[Column],
    attributes: Mapping[str, Column],
    budget: PlanningBudget,
    is_clocked: bool,
) -> EvaluatedSample:
    named = [column.alias(f"a{n}") for n, column in enumerate(attributes.values())]
    ranks = [RANK] if RANK in sample.columns else []
    answers = [F.coalesce(condition, F.lit(False)) for condition in conditions]
    durations: list[Column] = []
    if is_clocked:
        sample = sample.select(*named, clocked.clocked(conditions).alias(CLOCKED), HELD_OUT, *ranks)
        named = [F.col(f"a{n}") for n in range(len(named))]
        answers = clocked.answers(F.col(CLOCKED), len(conditions))
        durations = clocked.durations(F.col(CLOCKED), len(conditions))
    flags = [answer.alias(f"_{n}") for n, answer in enumerate(answers)]
    times = [each.alias(f"t{n}") for n, each in enumerate(durations)]
    evaluated = sample.select(*named, *flags, HELD_OUT, *ranks, *times)
    table = budget.run(lambda: collect_arrow(evaluated))
    columns: dict[str, pa.Array] = {}
    rejected: dict[str, str] = {}
    text_lengths: dict[str, float] = {}
    for number, name in enumerate(attributes):
        values = _plain(table.column(number))
        if pa.types.is_string(values.type):
            text_lengths[name] = pc.mean(pc.binary_length(values)).as_py() or 0.0
        why = screen_attribute(values)
        if why is None:
            columns[name] = values
        else:
            rejected[name] = why
    passes = _matrix(table.columns[len(named) : len(named) + len(answers) + 1]).astype(bool)
    return EvaluatedSample(
        columns,
        ~passes[:, :-1],
        passes[:, -1],
        rejected,
        text_lengths,
        estimate_rows(table.column(RANK).to_numpy()) if ranks else None,
        _matrix(table.columns[-len(times) :]).astype(float) if times else None,
    )


def collect_arrow(df: DataFrame) -> pa.Table:
    """Return the rows of a DataFrame as an Arrow table.

    In a JVM that has just started, classes of Arrow take a quarter of a second to load. Rows of
    plain values take the other way, if there is one.
    """
    kinds = [_PLAIN_KINDS.get(type(each.dataType)) for each in df.schema]
    if None in kinds or not hasattr(df, "_jdf"):
        return df.toArrow().combine_chunks()
    rows = df.collect()
    arrays = [
        pa.array([row[n] for row in rows], kind, from_pandas=False) for n, kind in enumerate(kinds)
    ]
    return pa.table(arrays, names=df.columns)


def learn_native(
    evaluated: EvaluatedSample,
    timed: TimedConditions,
    options: MeshOptions,
    seed: int | None,
    budget: PlanningBudget,
    why_no_mesh: str | None = None,
) -> NativeLesson:
    """Search for the mesh that costs least.

    Parameters
    ----------
    evaluated, timed
        What the conditions drop, and what they cost.
    options, seed
        Of the search.
    budget
        Limits the time.
    why_no_mesh
        Why there is no search, if there is none.

    """
    training = TrainingSet(evaluated.columns, evaluated.drops, timed.cost_us)
    rejected = dict(evaluated.rejected)
    why_no_mesh = "time" if budget.is_over else why_no_mesh
    if why_no_mesh is not None:
        result = SearchResult(None, 0, 0.0, why_no_mesh)
        return NativeLesson(result, training, timed, rejected)
    fitted = training.subset(np.flatnonzero(~evaluated.held_out))
    left_s = budget.left_s(SEARCH_SHARE)
    if left_s is not None:
        seconds_max = min(left_s, options.seconds_max or left_s)
        options = dataclasses.replace(options, seconds_max=max(seconds_max, 1e-3))
    result = find_mesh(fitted, options, seed, budget.progress)
    used = result.mesh.tree.attributes if result.mesh else []
    rejected |= {name: NOT_WORTH_ITS_COST for name in evaluated.columns if name not in used}
    return NativeLesson(result, training, timed, rejected)


def _matrix(columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
    return np.stack([_plain(each).to_numpy(zero_copy_only=False) for each in columns], axis=1)


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
