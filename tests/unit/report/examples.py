"""Reports for the tests of this folder: a filter's and an engine's."""

from __future__ import annotations

from collections.abc import Callable

from eddyline.journal import Record
from eddyline.journal.events import DriftDetected, OrderChanged, TrialEnded
from eddyline.report import (
    ActionLine,
    ClassLine,
    MicroBatch,
    PredicateLine,
    QueryState,
    QueryStates,
    Report,
    RunReport,
)
from eddyline.report.run import OperatorNumbers

Named = Callable[[str], str]


def filter_report(named: Named = str) -> Report:
    """Return a report of a filter; `named` makes each of its texts from the name of a field."""
    calm, known = named("calm"), named("known")
    before, after = (known, calm), (calm, known)
    return Report(
        named("name"),
        named("policy"),
        [
            PredicateLine(named("native"), "spark"),
            PredicateLine(calm, named("kind"), 1000, 100, 2, 30, 5000.0, written_seen=400.0),
            PredicateLine(known, "lookup", 100, 50, 0, 5, busy_us=100.0, written_seen=1000.0),
        ],
        rows=1000,
        kept=50,
        orders=[([named("first"), named("second")], 2)],
        changes=[
            Record(DriftDetected(row_class=named("row_class")), 10, named("process")),
            Record(
                OrderChanged(before=before, after=after, cost_before_us=6.0, cost_after_us=5.1), 20
            ),
            Record(
                TrialEnded(
                    subject="order",
                    method="before_after",
                    verdict="reverted",
                    before=(named("reverted_to"),),
                    after=after,
                    rows=8_192,
                    before_us=5.0,
                    after_us=6.0,
                ),
                30,
            ),
        ],
        profiling_us=100.0,
        deciding_us=50.0,
        routing_us=250.0,
        budget=0.01,
        classes=[ClassLine(named("rows"), named("route"), named("where"), 0.4, 2.0, 3.0)],
        rejected={named("rejected"): named("reason")},
        pairs={named("predicate"): named("attribute")},
        at_fault=2,
        on_error="drop",
        actions=[
            ActionLine(named("DataFrame 1"), 1, 600, 30, 700, 4000.0),
            ActionLine(named("DataFrame 2"), 1, 400, 20, 435, 1500.0),
        ],
    )


def run_report(named: Named = str) -> RunReport:
    """Return a report of a run; `named` makes each of its texts from the name of a field."""
    work = {named("stream"): {named("operator"): OperatorNumbers(80, 0.25, 0.75)}}
    return RunReport(
        [
            MicroBatch(0, 100, 7, 0.5, visits=120),
            MicroBatch(1, 100, 5, 0.3, visits=80, operators=work, late=3),
        ],
        QueryStates(
            [
                QueryState(
                    named("query"), named("sql"), named("sink"), named("state"), 12, named("error")
                )
            ]
        ),
    )
