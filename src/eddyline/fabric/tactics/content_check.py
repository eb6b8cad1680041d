"""The benefit check of content-based routing: a pair stays in use only while it pays.

References
----------
Bizarro et al., Content-Based Routing: Different Plans for Different Data, VLDB 2005, section 4.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from eddyline.arrays import IntArray, Rows
from eddyline.content import NO_ATTRIBUTE, ContentLearns
from eddyline.fabric.operator_array import RouteTrace
from eddyline.fabric.tactics.content_routes import PartitionedAttributes
from eddyline.fabric.tactics.tactic import SegmentContext
from eddyline.fabric.trials import AFTER, BEFORE, PairTrial
from eddyline.journal.events import Verdict

PAUSE_ROWS = 16_384  # before a pair is checked again; doubled each time, up to 16 times
DOUBLINGS_MAX = 4
PAUSES_MAX = 256


class BenefitCheck:
    """Puts pairs of an operator and a classifier attribute on trial, and to use if they pay.

    Several pairs may be proposed together; if they pay together, each is then checked by itself,
    because one pair may make another superfluous. Pairs that do not pay together are not tried
    again for a while, and one that does is checked again after a while.

    Parameters
    ----------
    content
        Whose pairs are checked.
    attributes
        The attributes of a batch.
    context
        Shared with the driver of the segment.

    """

    def __init__(
        self, content: ContentLearns, attributes: PartitionedAttributes, context: SegmentContext
    ) -> None:
        #: Classifier attributes of each side of the trial; the first while there is no trial.
        self.sides: tuple[IntArray, IntArray] = (content.classifier, content.classifier)
        self._content = content
        self._attributes = attributes
        self._context = context
        self._array = context.array
        self._trial: PairTrial | None = None
        self._operators: list[int] = []
        self._to_check: deque[int] = deque()
        self._waiting: dict[int, int] = {}
        # Until how many rows some pairs are left alone together, and how many times they were.
        self._pauses: dict[frozenset[tuple[int, int]], tuple[int, int]] = {}

    @property
    def is_running(self) -> bool:
        """Whether pairs are on trial."""
        return self._trial is not None

    def classifiers(self) -> tuple[IntArray, ...]:
        """Return the classifier attributes that rows are routed by: two sets in a trial."""
        return self.sides if self._trial is not None else (self._content.classifier,)

    def attributes_in_use(self) -> list[int]:
        """Return the attributes that classify rows for some operator, on either side."""
        used = set(np.concatenate(self.classifiers()).tolist())
        return sorted(used - {NO_ATTRIBUTE})

    def deal(self, rows: Rows) -> tuple[Rows, ...]:
        """Return the rows of each side; all rows while there is no trial."""
        if self._trial is None:
            return (rows,)
        return self._trial.deal(rows, self._context.rng)

    def add(self, side: int, trace: RouteTrace) -> None:
        """Count a ruster of one side."""
        if self._trial is not None:
            self._trial.add_trace(side, trace)

    # --- what is checked ---------------------------------------------------------------------

    def propose(self, pairs: Mapping[int, int]) -> None:
        """Try the attributes that are not in use, by operator, unless that was done lately.

        While others are on trial, they wait.
        """
        if self._trial is not None:
            self._waiting.update(pairs)
            return
        wanted = {
            operator: attribute
            for operator, attribute in pairs.items()
            if self._content.classifier[operator] != attribute
            and not self._content.pruned_attributes[attribute]
        }
        if wanted and not self._is_paused(wanted):
            after = self._content.classifier.copy()
            for operator, attribute in wanted.items():
                after[operator] = attribute
            self._start(self._content.classifier.copy(), after, list(wanted), is_new=True)

    def check_again(self, operator: int, at_once: bool = False) -> None:
        """Check the pair of an operator that is in use, unless that was done a short while ago."""
        attribute = int(self._content.classifier[operator])
        if attribute == NO_ATTRIBUTE or self._trial is not None:
            return
        if at_once or not self._is_paused({operator: attribute}):
            before = self._content.classifier.copy()
            before[operator] = NO_ATTRIBUTE
            self._start(before, self._content.classifier.copy(), [operator], is_new=False)

    def conclude(self) -> None:
        """End the trial if it is decided, and go on with the next pair."""
        trial = self._trial
        if trial is None:
            return
        cost_us = self._array.cost_us()
        costs_us = [self._partitioning_us(classifier) for classifier in self.sides]
        trial.set_partitioning(costs_us[BEFORE], costs_us[AFTER])
        if not trial.is_decided(cost_us):
            return
        self._end(trial.verdict(cost_us))
        while self._to_check and self._trial is None:
            self.check_again(self._to_check.popleft(), at_once=True)
        if self._trial is None and self._waiting:
            waiting, self._waiting = self._waiting, {}
            self.propose(waiting)

    def drop_attribute(self, attribute: int) -> None:
        """Stop to use an attribute that cannot classify rows any more."""
        if self._trial is not None and attribute in self.attributes_in_use():
            self._end("interrupted")
        for operator in np.flatnonzero(self._content.classifier == attribute).tolist():
            self._content.use(operator, NO_ATTRIBUTE)

    # --- trials ------------------------------------------------------------------------------

    def _start(self, before: IntArray, after: IntArray, operators: list[int], is_new: bool) -> None:
        self.sides = before, after
        self._operators = operators
        self._trial = PairTrial(
            tuple(self._words(operator, int(before[operator])) for operator in operators),
            tuple(self._words(operator, int(after[operator])) for operator in operators),
            len(self._array),
            is_new,
        )

    def _end(self, verdict: Verdict) -> None:
        trial, self._trial = self._trial, None
        assert trial is not None
        after = self.sides[AFTER]
        ratios = self._content.gain_ratios
        best = max(float(ratios[operator, after[operator]]) for operator in self._operators)
        self._context.write(trial.ended(verdict, self._array.cost_us(), round(best, 4)))
        if verdict == "interrupted":
            return
        self._content.classifier[:] = self.sides[AFTER if verdict == "kept" else BEFORE]
        # A pair that pays is checked less often, unless it has to come back after each profile.
        stays = verdict == "kept" and not self._content.options.stops_before_profiling
        self._pause({operator: int(after[operator]) for operator in self._operators}, int(stays))
        if verdict == "kept" and len(self._operators) > 1:
            self._to_check.extend(self._operators)

    def _partitioning_us(self, classifier: IntArray) -> float:
        used = set(classifier.tolist()) - {NO_ATTRIBUTE}
        measured = not self._array.has_given_costs
        return sum(self._attributes.cost_us(attribute, measured) for attribute in used)

    def _pause(self, pairs: Mapping[int, int], doublings_min: int = 0) -> None:
        times = max(doublings_min, self._pauses.get(frozenset(pairs.items()), (0, 0))[1])
        until = self._context.ledger.rows + PAUSE_ROWS * 2**times
        if len(self._pauses) >= PAUSES_MAX:
            self._pauses.pop(next(iter(self._pauses)))
        self._pauses[frozenset(pairs.items())] = until, min(times + 1, DOUBLINGS_MAX)

    def _is_paused(self, pairs: Mapping[int, int]) -> bool:
        return self._context.ledger.rows < self._pauses.get(frozenset(pairs.items()), (0, 0))[0]

    def _words(self, operator: int, attribute: int) -> str:
        name = self._array.operators[operator].name
        column = self._attributes.name(attribute)
        return name if column is None else f"{name} by {column}"
