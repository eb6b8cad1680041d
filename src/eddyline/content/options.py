"""Parameters of Content-Learns, Eddyline's and the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ContentOptions:
    """Parameters of Content-Learns; the defaults are Eddyline's own.

    Parameters
    ----------
    profile_probability
        P: share of the rows that are sent first to the operator that is being profiled, at the
        start.
    profile_budget
        What such detours may cost, as a share of the total cost; P is set accordingly. (Where
        operators hardly differ, a detour costs nothing, and small correlations take many rows to
        see.) None: P stays as it is.
    sample_rows
        \\|R\\|: rows that the choice of an operator's classifier attribute rests on.
    partitions
        d: ranges that a continuous attribute is cut into, and hash buckets of a discrete one.
    values_max
        Values of a discrete attribute, the most frequent ones, that have a partition of their own.
        0: all values are hashed.
    cut_by
        Ranges have about the same number of rows ("frequency"), or the same width between the
        least and the greatest value seen ("width").
    gain_ratio_min
        The threshold (gamma in definition 3.1): an attribute must have a larger gain ratio to be a
        classifier attribute.
    beyond_chance
        Whether what chance shows counts for nothing: a gain must exceed it, only the excess is
        compared with the threshold, and a selectivity that rests on few rows follows new rows
        faster.
    memory
        Weight of the past in a running selectivity, for each row that is seen.
    keeps_counts
        Whether an operator's counts continue from its last turn, fading, or start from zero.
    counts_all_rows
        Whether to count also rows that reach the profiled operator on their usual route, not only
        those that are sent to it first; at the beginning, for all operators.
    first_look_rows
        Rows on which all operators are evaluated at the start, so that the first attributes are
        known at once rather than after a round of profiling. 0: profile one by one only.
    stops_before_profiling
        Whether an operator is judged by its overall selectivity while it is profiled. If not, its
        attribute stays in use, and its benefit is checked again from time to time.
    """

    profile_probability: float = 0.02
    profile_budget: float | None = 0.01
    sample_rows: int = 600
    partitions: int = 24
    values_max: int = 232
    cut_by: Literal["frequency", "width"] = "frequency"
    gain_ratio_min: float = 0.0005
    beyond_chance: bool = True
    memory: float = 0.998
    keeps_counts: bool = True
    counts_all_rows: bool = True
    first_look_rows: int = 128
    stops_before_profiling: bool = False

    def __post_init__(self) -> None:
        for name in ("profile_probability", "memory"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be above 0 and below 1, not {getattr(self, name)}")
        for name in ("sample_rows", "partitions"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be at least 2, not {getattr(self, name)}")
        for name in ("values_max", "gain_ratio_min", "first_look_rows"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if self.cut_by not in ("frequency", "width"):
            raise ValueError(f"cut_by must be 'frequency' or 'width', not {self.cut_by!r}")

    @classmethod
    def paper(cls) -> ContentOptions:
        """Return the paper's own parameters (Table 2 and footnote 3) and its way of learning.

        The paper gives no value for gamma. With 150 rows in 24 partitions an attribute that tells
        nothing has a gain ratio of 0.025 on average, and in one of a thousand samples 0.05.
        """
        return cls(
            profile_probability=0.06,
            profile_budget=None,
            sample_rows=150,
            values_max=0,
            cut_by="width",
            memory=0.95,
            gain_ratio_min=0.05,
            beyond_chance=False,
            keeps_counts=False,
            counts_all_rows=False,
            first_look_rows=0,
            stops_before_profiling=True,
        )
