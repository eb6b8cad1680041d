"""Parameters of Content-Learns, Eddyline's and the paper's."""

from __future__ import annotations

from dataclasses import dataclass


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
        d: partitions of an attribute's domain.
    gain_ratio_min
        The threshold: smallest gain ratio, less what chance alone would show, that makes an
        attribute a classifier attribute.
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
    """

    profile_probability: float = 0.02
    profile_budget: float | None = 0.01
    sample_rows: int = 600
    partitions: int = 24
    gain_ratio_min: float = 0.0005
    memory: float = 0.998
    keeps_counts: bool = True
    counts_all_rows: bool = True
    first_look_rows: int = 128

    def __post_init__(self) -> None:
        for name in ("profile_probability", "memory"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must be above 0 and below 1, not {getattr(self, name)}")
        for name in ("sample_rows", "partitions"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be at least 2, not {getattr(self, name)}")

    @classmethod
    def paper(cls) -> ContentOptions:
        """Return the paper's own parameters (Table 2 and footnote 3)."""
        return cls(
            profile_probability=0.06,
            profile_budget=None,
            sample_rows=150,
            memory=0.95,
            gain_ratio_min=0.01,
            keeps_counts=False,
            counts_all_rows=False,
            first_look_rows=0,
        )
