"""Batches of searches: which probes search, and in which parts, so that memory is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eddyline.arrays import IntArray
from eddyline.index.index import Index, Pattern, Ranges
from eddyline.index.ordered_bits import Limits
from eddyline.joins.keys import KeyColumn
from eddyline.joins.run import Run

CANDIDATES_MAX = 1 << 17
#: Ranges of positions that a batch of probes visits at once.
RANGES_MAX = 1 << 20
#: Candidates of a probe by one compared column from which a second one is used too.
ORDERED_MIN = 32


def valid_probes(keys: Sequence[KeyColumn]) -> IntArray | None:
    """Return the probes without NULL; None if no probe has one."""
    masks = [key.is_valid for key in keys if key.is_valid is not None]
    if not masks:
        return None
    return np.flatnonzero(np.logical_and.reduce(masks))


def within(run: Run, limits: Mapping[int, Limits]) -> tuple[Ranges, IntArray]:
    """Return ranges of positions in an ordered index of a run, and the rows at its positions.

    One sorted column serves the first interval exactly. Where that leaves many candidates and
    there is another interval, bits of both columns leave fewer.
    """
    first, *others = limits
    index = run.sorted_values(first)
    ranges = index.ranges(*limits[first])
    probes = len(limits[first].low)
    if others and ranges.counts.sum() > ORDERED_MIN * probes:
        both = run.ordered_bits(first, others[0])
        if both.ranges_per_probe(limits[first]).sum() <= RANGES_MAX:
            return both.ranges(limits[first], limits[others[0]]), both.rows
    return ranges, index.rows


def in_parts(
    indexes: Sequence[Index], pattern: Pattern, keys: Sequence[KeyColumn]
) -> Iterator[tuple[int, Sequence[KeyColumn]]]:
    """Yield stretches of probes that visit a bounded number of ranges, with the first position."""
    per_probe = sum(index.ranges_per_probe(pattern) for index in indexes)
    count, size = len(keys[0]), max(1, RANGES_MAX // max(per_probe, 1))
    if count <= size:
        yield 0, keys
        return
    for first in range(0, count, size):
        rows = np.arange(first, min(first + size, count))
        yield first, [key.take(rows) for key in keys]


def in_slices(ranges: Sequence[Ranges], count: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of probes with a bounded number of candidates; one probe may exceed it."""
    per_probe = np.zeros(count, dtype=np.int64)
    for given in ranges:
        np.add.at(per_probe, given.probes, given.counts)
    ends = np.cumsum(per_probe)
    begin = 0
    while begin < count:
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + CANDIDATES_MAX, side="right")))
        yield begin, end
        begin = end


def cut(ranges: Ranges, begin: int, end: int) -> Ranges:
    """Return the ranges of a stretch of probes."""
    first, last = np.searchsorted(ranges.probes, [begin, end])
    if first == 0 and last == len(ranges.probes):
        return ranges
    return Ranges(ranges.probes[first:last], ranges.starts[first:last], ranges.counts[first:last])
