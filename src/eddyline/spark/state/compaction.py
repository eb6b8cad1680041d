"""Compaction: containers of a tier are merged into one of the next tier, inside a join task.

The rows of the merged containers are in the worker's memory anyway, as it has just probed them.
Rows that no running query wants any more are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from eddyline.joins.keys import concat_keys
from eddyline.joins.run import Run
from eddyline.spark.state.needs import Need, needed_rows
from eddyline.spark.state.state_file import StateFile

#: So many containers of one tier are merged into one of the next.
FAN_IN = 8


def choose_merges(files: Iterable[StateFile]) -> tuple[str, ...]:
    """Return the names of containers to merge: the oldest of the lowest tier that is full.

    Parameters
    ----------
    files
        The containers of one task, oldest first.

    Examples
    --------
    >>> files = [StateFile(str(n), n, 0, 1, 9, 0, {}) for n in range(9)]
    >>> choose_merges(files)
    ('0', '1', '2', '3', '4', '5', '6', '7')
    >>> choose_merges(files[:7])
    ()

    """
    tiers: dict[int, list[str]] = {}
    for file in files:
        tiers.setdefault(file.tier, []).append(file.name)
    for _, names in sorted(tiers.items()):
        if len(names) >= FAN_IN:
            return tuple(names[:FAN_IN])
    return ()


def merge_runs(runs: Sequence[Run], needs: Sequence[Need], schema: pa.Schema) -> Run | None:
    """Return several runs of one SteM as one; None if no row is needed any more.

    Parameters
    ----------
    runs
        The runs, with keys and lineage as the current plan has them.
    needs
        What queries may still join of them.
    schema
        Columns to keep.

    """
    kept = [(run, needed_rows(run, needs)) for run in runs]
    kept = [(run, rows) for run, rows in kept if len(rows)]
    if not kept:
        return None
    keys = [
        concat_keys([run.keys[number].take(rows) for run, rows in kept])
        for number in range(len(kept[0][0].keys))
    ]
    lineage = {
        occurrence: np.concatenate([run.lineage[occurrence][rows] for run, rows in kept])
        for occurrence in kept[0][0].lineage
    }
    columns = [
        pa.concat_arrays([run.column(field).take(pa.array(rows)) for run, rows in kept])
        for field in schema
    ]
    times = np.concatenate([run.times_us[rows] for run, rows in kept])
    sequence = None
    if any(run.sequence is not None for run, _ in kept):
        sequence = np.concatenate([run.sequence_numbers()[rows] for run, rows in kept])
    compared = [
        np.concatenate([run.compared[number][rows] for run, rows in kept])
        for number in range(len(kept[0][0].compared))
    ]
    payload = pa.RecordBatch.from_arrays(columns, schema=schema)
    return Run(keys, times, lineage, payload, sequence, compared)
