"""Four streams for the AMRI benchmarks, each joined to the three others on a column of its own.

Every 5,000 rows of a stream, another order of the other states becomes its best one: the share of
its rows whose value has a partner changes in each column, least for the state to visit first.
"""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from eddyline.arrays import Codes, IntArray
from eddyline.bench.lab import read_lab

STREAMS = 4
#: Rows of a stream after which another order is best.
PHASE_ROWS = 5_000
#: Values of a join column with partners, and things that rows of all four streams are about.
VALUES, THINGS = 500, 1_000
#: Share of rows whose value has partners: in the state to visit first, second and third.
PARTNER_SHARES = (0.3, 0.65, 1.0)

#: An order of the other states.
Path = tuple[int, ...]


def others(stream: int) -> Path:
    """Return the streams that a stream is joined to; its columns are in this order.

    Examples
    --------
    >>> others(1)
    (0, 2, 3)

    """
    return tuple(other for other in range(STREAMS) if other != stream)


def column_for(stream: int, other: int) -> int:
    """Return the column of a stream that is joined to another stream.

    Examples
    --------
    >>> column_for(1, 3), column_for(3, 1)
    (2, 1)

    """
    return others(stream).index(other)


@dataclass(frozen=True)
class Streams:
    """Rows of four streams.

    Parameters
    ----------
    codes
        For each stream and each of its three columns, the codes of all rows.
    paths
        For each stream and phase, the best order of the other states; None if it is not known.

    """

    codes: list[list[Codes]]
    paths: list[list[Path]] | None = None

    @property
    def rows(self) -> int:
        """Rows of each stream."""
        return min(len(columns[0]) for columns in self.codes)


def spread(values: IntArray, salt: int) -> Codes:
    """Return codes whose high bits are spread evenly (SplitMix64)."""
    code = values.astype(np.uint64) + np.uint64((salt + 1) * 0x9E37_79B9_7F4A_7C15 % 2**64)
    code = (code ^ (code >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    code = (code ^ (code >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return code ^ (code >> np.uint64(31))


def make_streams(
    seed: int, phases: int, paths: Sequence[int] = (6, 6, 6, 6), phase_rows: int = PHASE_ROWS
) -> Streams:
    """Return rows whose best order changes with each phase.

    Parameters
    ----------
    seed
        Of the rows and orders.
    phases
        Number of phases.
    paths
        For each stream, how many different orders are best in turn: 1 to 6.
    phase_rows
        Rows of a phase of one stream.

    """
    rng = np.random.default_rng(seed)
    orders = [_orders(rng, others(stream), count, phases) for stream, count in enumerate(paths)]
    rows = phases * phase_rows
    codes = []
    for stream in range(STREAMS):
        things = rng.integers(0, THINGS, rows)
        shares = np.zeros((3, rows))
        for phase, order in enumerate(orders[stream]):
            for share, other in zip(PARTNER_SHARES, order, strict=True):
                phase_slice = slice(phase * phase_rows, (phase + 1) * phase_rows)
                shares[column_for(stream, other), phase_slice] = share
        codes.append(
            [
                _column(rng, stream, other, things, shares[n])
                for n, other in enumerate(others(stream))
            ]
        )
    return Streams(codes, orders)


def _orders(rng: np.random.Generator, streams: Path, count: int, phases: int) -> list[Path]:
    """Return the best order of each phase, none the same as before if there are several."""
    every = list(itertools.permutations(streams))
    allowed = [every[n] for n in rng.permutation(len(every))[:count]]
    chosen: list[Path] = []
    for _ in range(phases):
        possible = [path for path in allowed if not chosen or path != chosen[-1]] or allowed
        chosen.append(possible[int(rng.integers(len(possible)))])
    return chosen


def _column(
    rng: np.random.Generator, stream: int, other: int, things: IntArray, shares: np.ndarray
) -> Codes:
    """Return a join column: the value of the row's thing, or one that the other stream lacks."""
    pair = min(stream, other) * STREAMS + max(stream, other)
    values = spread(things, pair) % np.uint64(VALUES)
    has_partner = rng.random(len(things)) < shares
    without = rng.integers(0, VALUES, len(things)) + VALUES * (1 + stream)
    return spread(np.where(has_partner, values.astype(np.int64), without), pair)


#: What the Lab readings are rounded to: degrees, per cent, metres.
LAB_STEPS = {"temperature": 0.1, "humidity": 0.1, "distance": 1.0}
#: Which attribute joins which streams: each stream has a partner for each attribute.
_LAB_PAIRS = {
    "temperature": ((0, 1), (2, 3)),
    "humidity": ((0, 2), (1, 3)),
    "distance": ((0, 3), (1, 2)),
}


def lab_streams(folder: pathlib.Path, rows: int) -> Streams:
    """Return readings of four groups of neighbouring sensors, in the order they were taken.

    Parameters
    ----------
    folder
        With the Lab data.
    rows
        Most rows of a stream.

    """
    nested = folder / "intel_lab"
    places = pd.read_csv(
        (nested if nested.is_dir() else folder) / "mote_locs.txt",
        sep=r"\s+",
        names=["mote_id", "x", "y"],
    )
    lab = read_lab(folder).merge(places, on="mote_id")
    # Neighbours are in one stream: a quarter of the sensors each, by where they stand.
    places = places.sort_values(["x", "y"])
    group = dict(zip(places.mote_id, np.arange(len(places)) * STREAMS // len(places), strict=True))
    lab["stream"] = lab.mote_id.map(group)
    lab["distance"] = np.hypot(lab.x, lab.y)
    codes: list[list[Codes]] = []
    for stream in range(STREAMS):
        readings = lab[lab.stream == stream].head(rows)
        columns = {}
        for salt, (attribute, pairs) in enumerate(_LAB_PAIRS.items()):
            (pair,) = (pair for pair in pairs if stream in pair)
            other = pair[0] if pair[1] == stream else pair[1]
            values = np.round(readings[attribute].to_numpy() / LAB_STEPS[attribute])
            columns[other] = spread(values.astype(np.int64), salt)
        codes.append([columns[other] for other in others(stream)])
    least = min(len(columns[0]) for columns in codes)
    return Streams([[column[:least] for column in columns] for columns in codes])
