"""What is known where rows are routed by content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from eddyline.attributes.layout import Layout
from eddyline.fabric.knowledge.order import Costs, check_version, merge_costs


@dataclass(frozen=True)
class PairKnowledge:
    """The classifier attribute of a predicate.

    Parameters
    ----------
    attribute
        Its name.
    layout
        How its domain is partitioned.
    detailed
        S: the predicate's selectivity in each partition.

    """

    attribute: str
    layout: Layout
    detailed: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "attribute": self.attribute,
            "layout": self.layout.to_dict(),
            "detailed": list(self.detailed),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> PairKnowledge:
        """Read what `to_dict` wrote."""
        layout = Layout.from_dict(plain["layout"])
        return cls(plain["attribute"], layout, tuple(plain["detailed"]))


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
        CA and S: the classifier attribute of each predicate, with its partitions; None for none.
    overall
        W: selectivities by predicate.
    rows
        Rows that this rests on, with those of the knowledge that its router started from.
    rejected
        Columns that cannot classify rows, and why.
    pairs
        The classifier attribute of each predicate that has one, both by name.

    """

    kind: ClassVar[str] = "content"
    version: ClassVar[int] = 2

    order: tuple[int, ...]
    cost_us: Costs
    classifier: tuple[PairKnowledge | None, ...]
    overall: tuple[float, ...]
    rows: int
    rejected: Mapping[str, str] = field(default_factory=dict)
    pairs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def merge(cls, parts: Sequence[ContentKnowledge]) -> ContentKnowledge:
        """Return what the worker with the most rows knows, with mean costs.

        Partitions differ from worker to worker, so selectivities of several cannot be mixed.
        """
        most = max(parts, key=lambda part: part.rows)
        return cls(
            most.order,
            merge_costs([part.cost_us for part in parts]),
            most.classifier,
            most.overall,
            most.rows,
            most.rejected,
            most.pairs,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "kind": self.kind,
            "version": self.version,
            "order": list(self.order),
            "cost_us": list(self.cost_us),
            "classifier": [None if pair is None else pair.to_dict() for pair in self.classifier],
            "overall": list(self.overall),
            "rows": self.rows,
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
            tuple(
                None if pair is None else PairKnowledge.from_dict(pair)
                for pair in plain["classifier"]
            ),
            tuple(plain["overall"]),
            plain["rows"],
            dict(plain["rejected"]),
            dict(plain["pairs"]),
        )
