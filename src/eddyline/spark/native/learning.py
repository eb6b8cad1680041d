"""Learning about native conditions: what they drop, what they cost, and the best mesh."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from eddyline.attributes.screening import NOT_WORTH_ITS_COST, screen_attribute
from eddyline.mesh import MeshOptions, SearchResult, TrainingSet, find_mesh
from eddyline.spark.common.planning import PlanningBudget
from eddyline.spark.native.pilot import HELD_OUT
from eddyline.spark.native.timing import time_conditions

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


def learn_native(
    sample: DataFrame,
    conditions: Sequence[Column],
    attributes: Mapping[str, Column],
    options: MeshOptions,
    seed: int | None,
    budget: PlanningBudget,
    reading_share: float = 1.0,
) -> NativeLesson:
    """Evaluate all conditions on the sample, time each of them, and search for a mesh.

    Parameters
    ----------
    sample
        Sampled rows, with the flag `HELD_OUT`.
    conditions, attributes
        The conditions, and the columns that may classify rows.
    options, seed
        Of the search.
    budget, reading_share
        Limits the time, and the share of it for reading the sample. Raises `OutOfTimeError` if the
        sample cannot be read by then.

    """
    answers = [
        F.coalesce(condition, F.lit(False)).alias(f"_{n}") for n, condition in enumerate(conditions)
    ]
    named = [column.alias(f"a{n}") for n, column in enumerate(attributes.values())]
    evaluated = sample.select(*named, *answers, F.col(HELD_OUT))
    table = budget.part(reading_share).run(evaluated.toArrow).combine_chunks()
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
    timed = time_conditions(sample, conditions, table.num_rows, budget)
    training = TrainingSet(columns, ~flags[:, :-1], timed.cost_us)
    fitted = training.subset(np.flatnonzero(~flags[:, -1]))
    left_s = budget.left_s(SEARCH_SHARE)
    if left_s is not None:
        seconds_max = min(left_s, options.seconds_max or left_s)
        options = dataclasses.replace(options, seconds_max=max(seconds_max, 1e-3))
    if not timed.is_complete or budget.is_over:
        return NativeLesson(
            SearchResult(None, 0, 0.0, "time"), training, timed.is_complete, rejected
        )
    result = find_mesh(fitted, options, seed, budget.progress)
    used = result.mesh.tree.attributes if result.mesh else []
    rejected |= {name: NOT_WORTH_ITS_COST for name in columns if name not in used}
    return NativeLesson(result, training, timed.is_complete, rejected)


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
