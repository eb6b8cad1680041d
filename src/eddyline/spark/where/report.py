"""From what the driver has collected to the report of a `where`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from eddyline.attributes.screening import NULL_EVERYWHERE
from eddyline.fabric import RouterOptions, Totals
from eddyline.fabric.tactics.choose import RoutingPolicy, mesh_options, policy_name
from eddyline.ordering import Policy
from eddyline.report import PredicateLine, Report
from eddyline.spark.common.columns import TEXT_MAX
from eddyline.spark.common.predicates import LookupPredicate, Predicate, PythonPredicate
from eddyline.spark.where.collector import NoteCollector
from eddyline.spark.where.stages import Stages

if TYPE_CHECKING:
    from eddyline.spark.native.stage import NativeStages


def make_report(
    name: str,
    policy: RoutingPolicy,
    options: RouterOptions,
    stages: Stages,
    collector: NoteCollector,
    native: NativeStages | None,
    shortened: Collection[str],
    left_out: Mapping[str, str],
    has_sample: bool,
) -> Report:
    """Return the report of everything that was collected so far.

    `shortened` names the columns of which only short texts cross into Python, `left_out` those that
    do not cross at all, with the reason.
    """
    totals = collector.totals()
    names = stages.segment_names()
    native_classes = [] if native is None else native.class_lines()
    native_rejected = {} if native is None else native.rejected()
    return Report(
        name=name,
        policy=policy_name(policy),
        lines=_predicate_lines(stages, totals),
        rows=totals.rows,
        kept=totals.kept,
        at_fault=totals.at_fault,
        on_error=options.on_error,
        actions=collector.actions(),
        orders=collector.orders(names),
        changes=collector.journal().route_changes(),
        classes=[*native_classes, *collector.classes(names)],
        pairs=collector.pairs(),
        rejected={**native_rejected, **left_out, **_true_reasons(collector.rejected(), shortened)},
        profiling_us=totals.profiling_us,
        deciding_us=totals.deciding_us,
        routing_us=totals.routing_us,
        budget=options.budget,
        native_orders=[] if native is None else native.order_lines(),
        not_reordered={} if native is None else native.not_reordered(),
        native_as_written=why_as_written(policy, has_sample) if len(stages.before) > 1 else "",
    )


def why_as_written(policy: RoutingPolicy, has_sample: bool) -> str:
    """Return why a policy leaves native conditions in their written order; empty if it does not.

    Examples
    --------
    >>> why_as_written("sweep", has_sample=False)
    'policy "sweep" orders Python predicates and lookups only; policy="mesh" orders native ones too'
    >>> why_as_written("mesh", has_sample=False)
    ''

    """
    is_fixed = policy == "as_written" or (isinstance(policy, Policy) and not policy.learns)
    if is_fixed or mesh_options(policy) is not None:
        return ""
    if policy == "auto":
        return "" if has_sample else 'policy "auto" orders them with sample=..., "mesh" without one'
    return (
        f'policy "{policy_name(policy)}" orders Python predicates and lookups only; '
        f'policy="mesh" orders native ones too'
    )


def _true_reasons(rejected: Mapping[str, str], shortened: Collection[str]) -> dict[str, str]:
    """Return why columns cannot classify rows; workers saw NULL in place of long texts."""
    long = f"every text is longer than {TEXT_MAX} characters or NULL"
    return {
        name: long if reason == NULL_EVERYWHERE and name in shortened else reason
        for name, reason in rejected.items()
    }


def _predicate_lines(stages: Stages, totals: Totals) -> list[PredicateLine]:
    places = {id(predicate): index for index, predicate in enumerate(stages.routed)}
    lines = []
    for predicate in stages.written:
        index = places.get(id(predicate))
        if index is None:
            lines.append(PredicateLine(predicate.name, "spark"))
            continue
        lines.append(
            PredicateLine(
                predicate.name,
                kind_of(predicate),
                seen=int(totals.seen[index]),
                passed=int(totals.passed[index] - totals.failed[index]),
                failed=int(totals.failed[index]),
                profiled=int(totals.profiled[index]),
                busy_us=float(totals.busy_us[index]),
                written_seen=float(totals.written_seen[index]),
                profiled_us=float(totals.profiled_us[index]),
                in_order_seen=int(totals.in_order_seen[index]),
                in_order_us=float(totals.in_order_us[index]),
            )
        )
    return lines


def kind_of(predicate: Predicate) -> str:
    """Return what judges the rows: `spark`, `lookup`, or how a function is called."""
    if isinstance(predicate, PythonPredicate):
        return predicate.kind.replace("_", " ")
    return "lookup" if isinstance(predicate, LookupPredicate) else "spark"
