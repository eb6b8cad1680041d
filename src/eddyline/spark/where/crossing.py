"""Which columns cross into Python in case they classify rows, besides the predicates' arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eddyline.fabric.knowledge import ContentKnowledge, Knowledge, MeshKnowledge
from eddyline.fabric.tactics.choose import RoutingPolicy
from eddyline.journal.events import ColumnsLeftOut
from eddyline.spark.common.columns import candidate_attributes, shortened_texts
from eddyline.spark.common.predicates import Predicate
from eddyline.spark.where.cheapness import columns_that_pay

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class CrossingColumns:
    """The columns that may classify rows.

    Parameters
    ----------
    attributes
        Those that cross, by name; the predicates' arguments are among them.
    shortened
        Columns of which only short texts cross, so that workers see NULL for the long ones.
    left_out
        The columns that do not cross because that would not pay, with the reason; None if all do.

    """

    attributes: dict[str, Column]
    shortened: frozenset[str]
    left_out: ColumnsLeftOut | None


def choose_columns(
    df: DataFrame,
    arguments: Sequence[str],
    predicates: Sequence[Predicate],
    policy: RoutingPolicy,
    knowledge: Sequence[Knowledge],
    has_sample: bool,
) -> CrossingColumns:
    """Choose the columns that cross where the user has named none (docs/decisions/0026).

    Parameters
    ----------
    df
        The DataFrame to filter.
    arguments
        The predicates' arguments that are plain columns: they cross anyway.
    predicates
        Those that the router evaluates.
    policy
        Policies other than `auto` ask for classes of rows.
    knowledge
        What is known from earlier runs or from a sample.
    has_sample
        Whether the user has given a sample, from which nothing was learnt yet.

    """
    candidates = candidate_attributes(df, None, arguments)
    shortened = shortened_texts(df, arguments)
    of_classes, of_pairs = _columns_in_use(knowledge)
    crossing = {*of_classes, *of_pairs, *arguments}
    others = [name for name in candidates if name not in crossing]
    left_out = None
    if has_sample:
        crossing |= set(others)
    elif not of_classes:
        is_text = {name: name in shortened for name in others}
        paying, reason = columns_that_pay(is_text, predicates, knowledge, asked=policy != "auto")
        crossing |= paying
        missing = tuple(name for name in others if name not in paying)
        left_out = ColumnsLeftOut(columns=missing, reason=reason) if missing else None
    attributes = {name: column for name, column in candidates.items() if name in crossing}
    return CrossingColumns(attributes, shortened, left_out)


def _columns_in_use(knowledge: Sequence[Knowledge]) -> tuple[set[str], set[str]]:
    """Return the columns that tell classes apart, and those of content-based routing."""
    of_classes: set[str] = set()
    of_pairs: set[str] = set()
    for part in knowledge:
        if isinstance(part, MeshKnowledge):
            of_classes.update(part.attributes)
        elif isinstance(part, ContentKnowledge):
            of_pairs.update(pair.attribute for pair in part.classifier if pair is not None)
    return of_classes, of_pairs
