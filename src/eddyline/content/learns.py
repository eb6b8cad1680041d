"""Content-Learns: which attribute tells apart the rows that an operator treats differently.

Rows are routed by what operators have done lately to rows *like them*. For each operator the
attribute with the largest gain ratio, if it exceeds a threshold, classifies rows for it; operators
without such an attribute are judged by their overall selectivity, as source-based routing does for
all of them. So it is never less adaptive than that: where a correlation ends, the selectivities of
all partitions converge to the overall one, since both are updated by the same rows.

References
----------
Bizarro et al., Content-Based Routing, VLDB 2005, sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.attributes.gain import (
    chance_gain,
    information_gain,
    selectivity_variance,
    split_information,
)
from eddyline.content.pruning import fixed_operators

NO_ATTRIBUTE = -1
CHANCE_DEVIATIONS = 4.0
COUNTED_ROWS_MAX = 12_000


@dataclass(frozen=True)
class ContentOptions:
    """Parameters of Content-Learns; the defaults are Eddyline's own.

    Parameters
    ----------
    profile_probability
        P: share of the rows that are sent first to the operator that is being profiled, at the
        start.
    profile_budget
        What such detours may cost, as a share of all; P is set so that they do. (Where operators
        hardly differ, a detour costs nothing, and small correlations take many rows to see.)
        None: P stays as it is.
    sample_rows
        \\|R\\|: rows to decide on an operator's classifier attribute with.
    partitions
        d: partitions of an attribute's domain.
    gain_ratio_min
        The threshold: smallest gain ratio, less what chance alone would show, that makes an
        attribute a classifier attribute.
    memory
        Weight of the past in a running selectivity, for each row that is seen.
    keeps_counts
        Whether an operator's counts go on from its last turn, fading, rather than start anew.
    counts_all_rows
        Whether rows count that reach the profiled operator on their usual way, and not only those
        that are sent to it first; at the beginning, for all operators.
    variance_min
        For operators that are no filters: smallest relative variance of what they produce.
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
    variance_min: float = 0.05
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


class ContentLearns:
    """The matrices CA, In, Out, S and W, and the round of profiling that fills them.

    Parameters
    ----------
    operators, attributes
        How many there are.
    options
        See `ContentOptions`.
    filters
        Which operators pass or drop a row. Of the others, the variance of how many rows they
        produce takes the place of the gain ratio. None: all are filters.

    Examples
    --------
    Rows in partition 0 of the only attribute pass operator 0, rows in partition 1 do not:

    >>> content = ContentLearns(operators=2, attributes=1, options=ContentOptions(sample_rows=40))
    >>> partitions = np.array([[0, 1] * 20])
    >>> content.sample(partitions, passed=partitions[0] == 0)
    >>> content.is_sampled
    True
    >>> content.conclude()
    0
    >>> content.selectivities(partitions[:, :2]).round(2).tolist()
    [[1.0, 0.5], [0.0, 0.5]]

    """

    def __init__(
        self,
        operators: int,
        attributes: int,
        options: ContentOptions | None = None,
        filters: Sequence[bool] | None = None,
    ) -> None:
        self.options = options or ContentOptions()
        self._is_filter = [True] * operators if filters is None else list(filters)
        size = self.options.partitions + 1
        #: CA: the classifier attribute of each operator.
        self.classifier: IntArray = np.full(operators, NO_ATTRIBUTE, dtype=np.int64)
        #: In and Out: rows by attribute and partition, for the operator being profiled.
        self.rows_in: IntArray = np.zeros((attributes, size), dtype=np.int64)
        self.rows_out: IntArray = np.zeros((attributes, size), dtype=np.int64)
        self._kept_counts = {
            operator: (self.rows_in.copy(), self.rows_out.copy()) for operator in range(operators)
        }
        #: S: running selectivities by operator and partition of its classifier attribute.
        self.detailed: FloatArray = np.full((operators, size), 0.5)
        #: W: running selectivities by operator.
        self.overall: FloatArray = np.full(operators, 0.5)
        #: Gain ratios of all attributes for each operator, less what chance would show.
        self.gain_ratios: FloatArray = np.zeros((operators, attributes))
        #: Attributes that were found useless and are no longer looked at.
        self.pruned_attributes: BoolArray = np.zeros(attributes, dtype=bool)
        self.profiled = 0
        self._sampled = 0
        self._is_observed = np.zeros(operators, dtype=bool)

    # --- optimisation: one operator at a time -------------------------------------------------

    @property
    def is_sampled(self) -> bool:
        """Whether enough rows were profiled to decide on the operator."""
        return self._sampled >= self.options.sample_rows

    def sample(self, partitions: IntArray, passed: BoolArray | IntArray) -> None:
        """Add profiled rows: their partition of each attribute, and whether they passed.

        Of an operator that is no filter: how many rows it produced for each.
        """
        size = self.rows_in.shape[1]
        for attribute, of_rows in enumerate(partitions):
            self.rows_in[attribute] += np.bincount(of_rows, minlength=size)
            produced = np.bincount(of_rows, weights=passed, minlength=size)
            self.rows_out[attribute] += produced.astype(np.int64)
        self._sampled += len(passed)

    def conclude(self) -> int:
        """Choose the classifier attribute of the profiled operator; return it."""
        operator = self.profiled
        before = self.classifier[operator]
        if self._is_filter[operator]:
            scores, least = self._gain_ratios(), self.options.gain_ratio_min
        else:
            scores = selectivity_variance(self.rows_in, self.rows_out)
            least = self.options.variance_min
        scores[self.pruned_attributes] = 0.0
        self.gain_ratios[operator] = scores
        best = int(np.argmax(scores)) if len(scores) else NO_ATTRIBUTE
        if best == NO_ATTRIBUTE or scores[best] <= least:
            best = NO_ATTRIBUTE
        self.classifier[operator] = best
        longest = _longest_counted(self.rows_in)
        if longest is not None and not self._is_observed[operator]:
            sampled = self.rows_in[longest].sum()
            self.overall[operator] = self.rows_out[longest].sum() / sampled
        if best not in (NO_ATTRIBUTE, before):  # else the running values are the better ones
            into, out = self.rows_in[best], self.rows_out[best]
            self.detailed[operator] = np.where(
                into > 0, out / np.maximum(into, 1), self.overall[operator]
            )
        return best

    def _gain_ratios(self) -> FloatArray:
        """Return the gain ratio of each attribute, less what chance would show; 0 if no more."""
        gain = information_gain(self.rows_in, self.rows_out)
        surely = gain > chance_gain(self.rows_in, CHANCE_DEVIATIONS)
        gain -= chance_gain(self.rows_in)
        split = split_information(self.rows_in)
        ratios: FloatArray = np.divide(gain, split, out=np.zeros_like(gain), where=split > 0)
        ratios[~surely] = 0.0
        return ratios

    def stop_using(self, operator: int) -> None:
        """Judge the operator by its overall selectivity again."""
        self.classifier[operator] = NO_ATTRIBUTE

    def take_up(self, attribute: int) -> None:
        """Look at an attribute again that was pruned; nothing was counted by it meanwhile."""
        self.pruned_attributes[attribute] = False
        self.rows_in[attribute] = self.rows_out[attribute] = 0
        for kept_in, kept_out in self._kept_counts.values():
            kept_in[attribute] = kept_out[attribute] = 0

    def begin(self, operator: int) -> None:
        """Start to profile an operator, with empty counts or with those of its last turn."""
        if self.options.keeps_counts:
            self._kept_counts[self.profiled] = self.rows_in.copy(), self.rows_out.copy()
            before_in, before_out = self._kept_counts[operator]
            longest = _longest_counted(before_in)
            rows = 0 if longest is None else int(before_in[longest].sum())
            divisor = 2 if rows > COUNTED_ROWS_MAX else 1
            self.rows_in[:], self.rows_out[:] = before_in // divisor, before_out // divisor
        else:
            self.rows_in[:] = 0
            self.rows_out[:] = 0
        self.profiled = operator
        self._sampled = 0

    def next_operator(self, cost_us: FloatArray) -> int:
        """Return whose turn it is: round robin over those whose place is not plain anyway."""
        fixed = set(fixed_operators(self.overall, cost_us))
        operators = len(self.overall)
        for step in range(1, operators + 1):
            candidate = (self.profiled + step) % operators
            if candidate not in fixed:
                return candidate
        return (self.profiled + 1) % operators

    # --- routing ------------------------------------------------------------------------------

    def attributes_in_use(self) -> list[int]:
        """Return the attributes that classify rows for some operator."""
        return sorted({int(a) for a in self.classifier if a != NO_ATTRIBUTE})

    def selectivities(self, partitions: IntArray) -> FloatArray:
        """Return the expected selectivity of each operator for each row, or kind of row.

        Parameters
        ----------
        partitions
            One line for each attribute; only those in use are read.
        """
        expected = np.broadcast_to(self.overall, (partitions.shape[1], len(self.overall))).copy()
        for operator, attribute in enumerate(self.classifier):
            if attribute != NO_ATTRIBUTE:
                expected[:, operator] = self.detailed[operator][partitions[attribute]]
        return expected

    def observe(self, operator: int, passed: BoolArray, partitions: IntArray | None) -> None:
        """Update running selectivities with rows that an operator has judged.

        Parameters
        ----------
        partitions
            Partition of each row by the operator's classifier attribute; None if it has none.
        """
        rows = len(passed)
        if rows == 0:
            return
        self._is_observed[operator] = True
        memory = self.options.memory
        kept = memory**rows
        share_passed = np.count_nonzero(passed) / rows
        self.overall[operator] = kept * self.overall[operator] + (1 - kept) * share_passed
        if partitions is None:
            return
        size = self.detailed.shape[1]
        counts = np.bincount(2 * partitions + passed, minlength=2 * size).reshape(size, 2)
        into = counts.sum(axis=1)
        kept_by = memory**into
        share = counts[:, 1] / np.maximum(into, 1)
        self.detailed[operator] = kept_by * self.detailed[operator] + (1 - kept_by) * share


def _longest_counted(rows_in: IntArray) -> int | None:
    """Return the attribute by which most rows were counted; some may have been taken up later."""
    return int(rows_in.sum(axis=1).argmax()) if rows_in.any() else None


def routes_by_rank(
    selectivity: FloatArray, cost_us: FloatArray, grid: float = 0.0
) -> tuple[IntArray, Sequence[tuple[int, ...]]]:
    """Order the operators for each row by drop rate for time; return route numbers and routes.

    Parameters
    ----------
    selectivity
        Expected, by row and operator.
    cost_us
        Of each operator.
    grid
        Selectivities are rounded to multiples of it, so that rows whose expectations differ by
        nothing but noise share a route.

    Examples
    --------
    >>> numbers, routes = routes_by_rank(np.array([[0.9, 0.1], [0.1, 0.9]]), np.ones(2))
    >>> [routes[number] for number in numbers]
    [(1, 0), (0, 1)]

    """
    rounded = np.round(selectivity / grid) * grid if grid else selectivity
    rank = (1.0 - rounded) / cost_us
    orders = np.argsort(-rank, axis=1, kind="stable")
    operators = selectivity.shape[1]
    keys = orders @ (operators ** np.arange(operators, dtype=object)).astype(
        np.int64 if operators <= 15 else object
    )
    _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
    return numbers, [tuple(orders[row].tolist()) for row in first]
