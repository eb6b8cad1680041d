"""What is known where rows are routed by content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from eddyline.fabric.knowledge.order import Costs, check_version, merge_costs


@dataclass(frozen=True)
class ContentKnowledge:
    """The matrices of Content-Learns that routing needs.

    Parameters
    ----------
    order
        The order of rows about which no attribute says anything.
    cost_us
        Cost of each predicate, in microseconds a row; None where it was not measured.
    classifier
        CA: the classifier attribute of each predicate, by name; None for none.
    detailed
        S: selectivities by predicate and partition of its classifier attribute.
    overall
        W: selectivities by predicate.
    rejected
        Columns that cannot classify rows, and why.
    pairs
        The classifier attribute of each predicate that has one, both by name.

    """

    kind: ClassVar[str] = "content"
    version: ClassVar[int] = 1

    order: tuple[int, ...]
    cost_us: Costs
    classifier: tuple[str | None, ...]
    detailed: tuple[tuple[float, ...], ...]
    overall: tuple[float, ...]
    rejected: Mapping[str, str] = field(default_factory=dict)
    pairs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def merge(cls, parts: Sequence[ContentKnowledge]) -> ContentKnowledge:
        """Return the matrices of one worker, with mean costs and the most common order."""
        first = parts[0]
        orders = Counter(part.order for part in parts)
        return cls(
            max(orders, key=orders.__getitem__),
            merge_costs([part.cost_us for part in parts]),
            first.classifier,
            first.detailed,
            first.overall,
            {name: why for part in parts for name, why in part.rejected.items()},
            {predicate: name for part in parts for predicate, name in part.pairs.items()},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "kind": self.kind,
            "version": self.version,
            "order": list(self.order),
            "cost_us": list(self.cost_us),
            "classifier": list(self.classifier),
            "detailed": [list(line) for line in self.detailed],
            "overall": list(self.overall),
            "rejected": dict(self.rejected),
            "pairs": dict(self.pairs),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> ContentKnowledge:
        """Read what `to_dict` wrote."""
        check_version(cls, plain)
        return cls(
            tuple(plain["order"]),
            tuple(plain["cost_us"]),
            tuple(plain["classifier"]),
            tuple(tuple(line) for line in plain["detailed"]),
            tuple(plain["overall"]),
            dict(plain["rejected"]),
            dict(plain["pairs"]),
        )
