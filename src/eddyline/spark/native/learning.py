"""Learning about native conditions: what they drop, what they cost, and the best mesh."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from eddyline.arrays import BoolArray
from eddyline.attributes.screening import NOT_WORTH_ITS_COST, screen_attribute
from eddyline.mesh import MeshOptions, SearchResult, TrainingSet, find_mesh
from eddyline.spark.common.planning import PlanningBudget
from eddyline.spark.native.pilot import HELD_OUT
from eddyline.spark.native.timing import TimedConditions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SEARCH_SHARE = 0.4


@dataclass(frozen=True)
class NativeLesson:
    """What sampled rows taught about native conditions.

    Parameters
    ----------
    result
        Of the search for a mesh; made from the rows that are not held out.
    training
        All sampled rows, with drops and costs.
    is_timed
        Whether the costs of the conditions can be relied on.
    rejected
        Columns that cannot classify rows, and why.

    """

    result: SearchResult
    training: TrainingSet
    is_timed: bool
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

    """

    columns: Mapping[str, pa.Array]
    drops: BoolArray
    held_out: BoolArray
    rejected: Mapping[str, str]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.drops)


def evaluate_sample(
    sample: DataFrame,
    conditions: Sequence[Column],
    attributes: Mapping[str, Column],
    budget: PlanningBudget,
) -> EvaluatedSample:
    """Evaluate all conditions on the sample; raises `OutOfTimeError` if it takes too long.

    Parameters
    ----------
    sample
        Sampled rows, with the flag `HELD_OUT`.
    conditions, attributes
        The conditions, and the columns that may classify rows.
    budget
        Limits the time.

    """
    answers = [
        F.coalesce(condition, F.lit(False)).alias(f"_{n}") for n, condition in enumerate(conditions)
    ]
    named = [column.alias(f"a{n}") for n, column in enumerate(attributes.values())]
    evaluated = sample.select(*named, *answers, F.col(HELD_OUT))
    table = budget.run(evaluated.toArrow).combine_chunks()
    columns: dict[str, pa.Array] = {}
    rejected: dict[str, str] = {}
    for number, name in enumerate(attributes):
        values = _plain(table.column(number))
        why = screen_attribute(values)
        if why is None:
            columns[name] = values
        else:
            rejected[name] = why
    flags = np.stack(
        [_plain(each).to_numpy(zero_copy_only=False) for each in table.columns[len(named) :]],
        axis=1,
    ).astype(bool)
    return EvaluatedSample(columns, ~flags[:, :-1], flags[:, -1], rejected)


def learn_native(
    evaluated: EvaluatedSample,
    timed: TimedConditions,
    options: MeshOptions,
    seed: int | None,
    budget: PlanningBudget,
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

    """
    training = TrainingSet(evaluated.columns, evaluated.drops, timed.cost_us)
    rejected = dict(evaluated.rejected)
    if budget.is_over:
        return NativeLesson(
            SearchResult(None, 0, 0.0, "time"), training, timed.is_complete, rejected
        )
    fitted = training.subset(np.flatnonzero(~evaluated.held_out))
    left_s = budget.left_s(SEARCH_SHARE)
    if left_s is not None:
        seconds_max = min(left_s, options.seconds_max or left_s)
        options = dataclasses.replace(options, seconds_max=max(seconds_max, 1e-3))
    result = find_mesh(fitted, options, seed, budget.progress)
    used = result.mesh.tree.attributes if result.mesh else []
    rejected |= {name: NOT_WORTH_ITS_COST for name in evaluated.columns if name not in used}
    return NativeLesson(result, training, timed.is_complete, rejected)


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
