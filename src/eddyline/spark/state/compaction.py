"""Compaction: containers of a tier are merged into one of the next tier, inside a join task.

The rows of the merged containers are in the worker's memory anyway, as it has just probed them.
Rows that no running query wants any more are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.arrays import Bitmaps, BoolArray, IntArray
from eddyline.joins.keys import concat_keys
from eddyline.joins.run import Run
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


def merge_runs(runs: Sequence[Run], needed_since_us: IntArray, schema: pa.Schema) -> Run | None:
    """Return several runs of one SteM as one; None if no row is needed any more.

    Parameters
    ----------
    runs
        The runs, with keys and lineage as the current plan has them.
    needed_since_us
        By slot, the oldest event time that the query may still join.
    schema
        Columns to keep.

    """
    kept = [(run, np.flatnonzero(_is_needed(run, needed_since_us))) for run in runs]
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
    return Run(keys, times, lineage, pa.RecordBatch.from_arrays(columns, schema=schema))


def _is_needed(run: Run, needed_since_us: IntArray) -> BoolArray:
    """Return which rows some query may still join."""
    limits = np.unique(needed_since_us)
    is_needed = np.zeros(len(run), dtype=bool)
    for limit in limits:
        slots = np.flatnonzero(needed_since_us == limit)
        mask = np.zeros(next(iter(run.lineage.values())).shape[1], dtype=np.uint64)
        for slot in slots:
            mask[slot // 64] |= np.uint64(1) << np.uint64(slot % 64)
        is_young = run.times_us >= limit
        for bitmaps in run.lineage.values():
            is_needed |= is_young & _wants(bitmaps, mask)
    return is_needed


def _wants(bitmaps: Bitmaps, mask: Bitmaps) -> BoolArray:
    return np.asarray((bitmaps & mask).any(axis=1))


def limits_by_slot(needed_since_us: Mapping[int, int], slots: int) -> IntArray:
    """Return for each slot the oldest event time needed; slots without a query need nothing."""
    limits = np.full(slots, np.iinfo(np.int64).max)
    for slot, limit in needed_since_us.items():
        limits[slot] = limit
    return limits
