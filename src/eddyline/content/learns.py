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

from typing import Any

import numpy as np

from eddyline.arrays import BoolArray, FloatArray, IntArray
from eddyline.attributes.gain import (
    chance_gain,
    gain_ratio,
    information_gain,
    split_information,
)
from eddyline.content.options import ContentOptions
from eddyline.content.pruning import fixed_operators

NO_ATTRIBUTE = -1
CHANCE_DEVIATIONS = 4.0
COUNTED_ROWS_MAX = 12_000
SURPRISE_DEVIATIONS = 5.0  # by which rows must differ from what is expected to have changed
SURPRISE_ROWS_MIN = 32
SURPRISED_SHARE = 0.25  # of the rows of a pair, for the rows to have changed
VARIANCE_MIN = 0.02  # as if at least 2 % of the rows were expected to pass, and to be dropped


class ContentLearns:
    """The matrices CA, In, Out, S and W, and the round of profiling that fills them.

    Parameters
    ----------
    operators, attributes
        Number of each.
    options
        See `ContentOptions`.

    Examples
    --------
    Rows in partition 0 of the only attribute pass operator 0, rows in partition 1 do not:

    >>> content = ContentLearns(operators=2, attributes=1, options=ContentOptions(sample_rows=40))
    >>> partitions = np.array([[0, 1] * 20])
    >>> content.sample(partitions, passed=partitions[0] == 0)
    >>> content.is_sampled
    True
    >>> content.use(0, content.conclude())
    >>> content.selectivities(partitions[:, :2]).round(2).tolist()
    [[0.98, 0.5], [0.02, 0.5]]

    """

    def __init__(
        self, operators: int, attributes: int, options: ContentOptions | None = None
    ) -> None:
        self.options = options or ContentOptions()
        size = self.options.values_max + self.options.partitions + 1
        #: CA: the classifier attribute in use for each operator.
        self.classifier: IntArray = np.full(operators, NO_ATTRIBUTE, dtype=np.int64)
        #: In and Out: rows by attribute and partition, for the operator being profiled.
        self.rows_in: IntArray = np.zeros((attributes, size), dtype=np.int64)
        self.rows_out: IntArray = np.zeros((attributes, size), dtype=np.int64)
        self._kept_counts = {
            operator: (self.rows_in.copy(), self.rows_out.copy()) for operator in range(operators)
        }
        #: S: running selectivities by operator, attribute and partition, of pairs that were chosen.
        self.detailed: FloatArray = np.full((operators, attributes, size), 0.5)
        #: W: running selectivities by operator.
        self.overall: FloatArray = np.full(operators, 0.5)
        #: Gain ratios of all attributes for each operator.
        self.gain_ratios: FloatArray = np.zeros((operators, attributes))
        #: Attributes that were screened out: they are not counted or chosen.
        self.pruned_attributes: BoolArray = np.zeros(attributes, dtype=bool)
        self.profiled = 0
        self._sampled = 0
        self._is_observed = np.zeros(operators, dtype=bool)
        # Rows that each value of S rests on; as many as it remembers unless they were counted.
        self._weight: FloatArray = np.full(self.detailed.shape, 1 / (1 - self.options.memory))

    # --- optimisation: one operator at a time -------------------------------------------------

    @property
    def is_sampled(self) -> bool:
        """Whether enough rows were profiled to decide on the operator."""
        return self._sampled >= self.options.sample_rows

    def sample(self, partitions: IntArray, passed: BoolArray) -> None:
        """Add profiled rows: their partition of each attribute, and whether they passed."""
        attributes, size = self.rows_in.shape
        if not attributes or len(passed) == 0:
            self._sampled += len(passed)
            return
        places = partitions + size * np.arange(attributes)[:, None]
        cells = attributes * size
        into = np.bincount(places.ravel(), minlength=cells)
        out = np.bincount(places[:, passed].ravel(), minlength=cells)
        self.rows_in += into.reshape(attributes, size)
        self.rows_out += out.reshape(attributes, size)
        self._sampled += len(passed)

    def conclude(self) -> int:
        """Return the best classifier attribute of the profiled operator, ready to be used.

        `NO_ATTRIBUTE` if no attribute exceeds the threshold. Nothing is put to use.
        """
        operator = self.profiled
        ratios = self._gain_ratios()
        ratios[self.pruned_attributes] = 0.0
        self.gain_ratios[operator] = ratios
        longest = _longest_counted(self.rows_in)
        if longest is not None and not self._is_observed[operator]:
            sampled = self.rows_in[longest].sum()
            self.overall[operator] = self.rows_out[longest].sum() / sampled
        best = int(np.argmax(ratios)) if len(ratios) else NO_ATTRIBUTE
        if best == NO_ATTRIBUTE or ratios[best] <= self.options.gain_ratio_min:
            return NO_ATTRIBUTE
        if best != self.classifier[operator]:  # else the running values are the better ones
            self._set_detailed(operator, best)
        return best

    def _set_detailed(self, operator: int, attribute: int) -> None:
        """Start S of a pair with what was counted."""
        into, out = self.rows_in[attribute], self.rows_out[attribute]
        overall = self.overall[operator]
        if self.options.beyond_chance:  # as if one more row had shown the overall selectivity
            self.detailed[operator, attribute] = (out + overall) / (into + 1)
            self._weight[operator, attribute] = into + 1
        else:
            counted = np.where(into > 0, out / np.maximum(into, 1), overall)
            self.detailed[operator, attribute] = counted

    def _gain_ratios(self) -> FloatArray:
        """Return the gain ratio of each attribute; beyond chance, if that is wanted."""
        # Most columns of In are zero for all attributes, and say nothing.
        is_used = self.rows_in.any(axis=0)
        into, out = self.rows_in[:, is_used], self.rows_out[:, is_used]
        if not self.options.beyond_chance:
            return np.asarray(gain_ratio(into, out))
        gain = information_gain(into, out)
        surely = gain > chance_gain(into, CHANCE_DEVIATIONS)
        gain -= chance_gain(into)
        split = split_information(into)
        ratios: FloatArray = np.divide(gain, split, out=np.zeros_like(gain), where=split > 0)
        ratios[~surely] = 0.0
        return ratios

    def use(self, operator: int, attribute: int) -> None:
        """Judge the operator by S of an attribute; by its overall selectivity if by none."""
        self.classifier[operator] = attribute

    def revise(self, attribute: int, origin: IntArray) -> None:
        """Continue with other partitions of an attribute.

        Parameters
        ----------
        attribute
            Its number.
        origin
            For each new partition the old one that its values were in, the last one if none.
        """
        self._forget_counts(attribute)
        moved = self.detailed[:, attribute, origin]
        is_new = origin == len(origin) - 1
        is_new[-1] = False  # NULL stays NULL
        self.detailed[:, attribute] = np.where(is_new, self.overall[:, None], moved)
        if self.options.beyond_chance:
            self._weight[:, attribute] = 1.0

    def reconsider(self, attribute: int) -> None:
        """Use a pruned attribute again, with counts of zero: none were kept while it was pruned."""
        self.pruned_attributes[attribute] = False
        self._forget_counts(attribute)

    def _forget_counts(self, attribute: int) -> None:
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
        """Return the operator to profile next: round robin over those without a fixed place."""
        fixed = set(fixed_operators(self.overall, cost_us))
        operators = len(self.overall)
        for step in range(1, operators + 1):
            candidate = (self.profiled + step) % operators
            if candidate not in fixed:
                return candidate
        return (self.profiled + 1) % operators

    # --- routing ------------------------------------------------------------------------------

    def selectivities(self, partitions: IntArray, classifier: IntArray | None = None) -> FloatArray:
        """Return the expected selectivity of each operator for each row, or kind of row.

        Parameters
        ----------
        partitions
            One line for each attribute; only those in use are read.
        classifier
            Attributes to use instead of those in use.
        """
        expected = np.broadcast_to(self.overall, (partitions.shape[1], len(self.overall))).copy()
        for operator, attribute in enumerate(self.classifier if classifier is None else classifier):
            if attribute != NO_ATTRIBUTE:
                own = self.detailed[operator, attribute]
                expected[:, operator] = own[partitions[attribute]]
        return expected

    def observe(self, operator: int, seen: int, passed: int, is_usual: bool = True) -> bool:
        """Update the overall selectivity with rows that an operator has judged.

        Rows on their usual route that differ from it by more than chance replace it. Rows of a
        detour do not, because other rows reach the operator on it. Returns whether they differ.
        """
        if seen == 0:
            return False
        self._is_observed[operator] = True
        kept = self.options.memory**seen
        share_passed = passed / seen
        expected = float(self.overall[operator])
        has_changed = is_usual and bool(is_surprise(expected, share_passed, seen))
        if has_changed and self.options.beyond_chance:
            kept = 0.0
        self.overall[operator] = kept * expected + (1 - kept) * share_passed
        return has_changed

    def observe_pair(
        self, operator: int | IntArray, attribute: int, passed: BoolArray, partitions: IntArray
    ) -> bool:
        """Update S of pairs with rows that the operators have judged.

        Partitions whose rows differ by more than chance from what was expected forget the past.
        Returns whether many rows do.

        Parameters
        ----------
        operator, attribute
            The pair, or the operator of each row and the attribute of all of them.
        passed, partitions
            Answer of the operator for each row, and the row's partition by the attribute.
        """
        size = self.detailed.shape[2]
        cells = operator * size + partitions
        into = np.bincount(cells)
        seen = into.nonzero()[0]
        out = np.bincount(cells[passed], minlength=len(into))[seen]
        into = into[seen]
        own = seen // size, attribute, seen % size
        expected, measured = self.detailed[own], out / into
        has_changed = is_surprise(expected, measured, into)
        kept = self.options.memory**into
        if self.options.beyond_chance:  # a mean at first, while it rests on few rows
            weight = self._weight[own]
            kept = np.minimum(kept, weight / (weight + into))
            kept[has_changed] = 0.0
            self._weight[own] = np.where(has_changed, 0.0, weight) + into
        self.detailed[own] = kept * expected + (1 - kept) * measured
        return bool(into[has_changed].sum() > SURPRISED_SHARE * len(passed))


def is_surprise(expected: Any, measured: Any, rows: Any) -> Any:
    """Return whether a selectivity differs from the one expected by more than chance.

    Examples
    --------
    >>> is_surprise(np.array([0.1, 0.1]), np.array([0.2, 0.9]), np.array([40, 40])).tolist()
    [False, True]

    """
    variance = np.maximum(expected * (1 - expected), VARIANCE_MIN)
    is_unlikely = rows * (measured - expected) ** 2 > SURPRISE_DEVIATIONS**2 * variance
    return is_unlikely & (rows >= SURPRISE_ROWS_MIN)


def _longest_counted(rows_in: IntArray) -> int | None:
    """Return the attribute with the most rows counted; reconsidered ones have fewer."""
    return int(rows_in.sum(axis=1).argmax()) if rows_in.any() else None
