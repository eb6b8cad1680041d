"""Where each predicate of a `where` runs: in Spark before the router, in it, or in Spark after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.fabric.pinned import runs_between_pinned
from eddyline.spark.common.predicates import NativePredicate, Predicate


@dataclass(frozen=True)
class Stages:
    """The predicates of a `where` by where they run.

    Parameters
    ----------
    written
        All predicates, as written.
    before
        Native conditions that Spark evaluates before the router.
    routed
        Predicates that the router evaluates, or applies in their place.
    after
        Native conditions that Spark evaluates after the router.

    """

    written: tuple[Predicate, ...]
    before: tuple[NativePredicate, ...]
    routed: tuple[Predicate, ...]
    after: tuple[NativePredicate, ...]

    @classmethod
    def of(cls, predicates: Sequence[Predicate]) -> Stages:
        """Return the stages of predicates in written order.

        Native conditions come first, except that nothing moves across a predicate that is not
        deterministic. A nondeterministic native condition between Python predicates is evaluated
        by Spark and applied by the router in its place.
        """
        python = [i for i, p in enumerate(predicates) if not isinstance(p, NativePredicate)]
        barrier = next(
            (i for i, p in enumerate(predicates) if not p.deterministic), len(predicates)
        )
        before: list[NativePredicate] = []
        routed: list[Predicate] = []
        after: list[NativePredicate] = []
        for i, predicate in enumerate(predicates):
            if not isinstance(predicate, NativePredicate):
                routed.append(predicate)
            elif i < barrier or not any(p < i for p in python):
                before.append(predicate)
            elif not any(p > i for p in python):
                after.append(predicate)
            else:
                routed.append(predicate)
        return cls(tuple(predicates), tuple(before), tuple(routed), tuple(after))

    def segment_names(self) -> list[list[str]]:
        """Return the names of the routed predicates, segment by segment."""
        runs = runs_between_pinned([not predicate.deterministic for predicate in self.routed])
        return [[self.routed[index].name for index in run] for run in runs]
