"""`eddyline bench cacq`: the experiments of the paper on CACQ, and rules on Spark."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from eddyline.arrays import FloatArray
from eddyline.bench import admission, cacq_conditions, cacq_folder, cacq_scaling, rules
from eddyline.bench.cacq_workload import (
    BATCH_ROWS,
    COLUMNS,
    INTEGERS,
    POSITIONS,
    above,
    make_eddy,
    make_rows,
)
from eddyline.bench.harness import Bench
from eddyline.fabric.shared.eddy import SharedEddy
from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators import Batch
from eddyline.ordering import POLICIES, AsWritten, Policy
from eddyline.ordering.policy import Change, Evidence
from eddyline.ordering.tickets import Tickets

TABLE_3 = {"a": 90, "b": 70, "c": 50, "d": 30, "e": 10}
WORKLOADS = {
    1: [{"a": 30}, {"b": 50}, {"c": 10}, {"d": 40}, {"e": 90}],
    2: [dict.fromkeys(COLUMNS[: n + 1], 10) for n in range(5)],
    3: [dict(zip(COLUMNS[: n + 1], (10, 30, 50, 70, 90), strict=False)) for n in range(5)],
}

#: Filters with most tickets in the paper's figure 9, where it names one.
MOST_TICKETS = {1: "e", 2: "a"}


class RandomOrder(Policy):
    """The paper's random scheme: every batch takes the operators in another order."""

    name = "random"
    on_trial = False
    draws_orders = True

    def learn(self, evidence: Evidence) -> Change | None:
        """Draw the order of the next batch."""
        self.order = tuple(self.rng.permutation(self.filters).tolist())
        return None


def run(bench: Bench) -> None:
    """Run all experiments and record their numbers."""
    bench.run_parts(
        {
            "visits": lambda: _filters_visited(bench),
            "tickets": lambda: _ticket_shares(bench),
            **cacq_scaling.parts(bench),
            **cacq_conditions.parts(bench),
            **cacq_folder.parts(bench),
            **rules.parts(bench),
            **admission.parts(bench),
        }
    )


# --- figure 8 ----------------------------------------------------------------------------------


def _filters_visited(bench: Bench) -> None:
    """How many grouped filters the average row visits, for the queries of Table 3."""
    rows = 200_000 if bench.quick else 1_000_000
    queries = [
        SharedQuery(n, above(dict(itertools.islice(TABLE_3.items(), n + 1)))) for n in range(5)
    ]
    policies: dict[str, Policy] = {
        "tickets": Tickets(),
        "tickets, every batch drawn": Tickets(lottery_share=1.0),
        "random": RandomOrder(),
        **{
            name: make() for name, make in POLICIES.items() if name not in ("as_written", "tickets")
        },
        "the best order": AsWritten(),
    }
    papers = {"tickets": "1.3", "random": "3.2", "the best order": "1.15"}
    with bench.progress("fig 8: filters visited", len(policies)) as advance:
        for name, policy in policies.items():
            rng = np.random.default_rng(bench.seed)
            eddy = make_eddy(queries, policy=policy)
            if name == "the best order":
                eddy.policy.adopt([POSITIONS[o.name] for o in eddy.operators])
            for _ in range(rows // BATCH_ROWS):
                eddy.run(make_rows(rng, BATCH_ROWS))
            bench.add(
                f"fig 8: filters visited by a row, {name}",
                eddy.visits / eddy.rows,
                "filters",
                "at most 5",
                papers.get(name),
            )
            advance()


# --- figure 9 ----------------------------------------------------------------------------------


def _ticket_shares(bench: Bench) -> None:
    """How many micro-batches after a new query the shares of tickets are steady."""
    batches, batch_rows = 12, 8 * BATCH_ROWS
    with bench.progress("fig 9: tickets", len(WORKLOADS)) as advance:
        for number, workload in WORKLOADS.items():
            rng = np.random.default_rng(bench.seed)
            eddy = SharedEddy(INTEGERS, Tickets(), seed=0)
            longest = 0
            for n, bounds in enumerate(workload):
                eddy.add({n: SharedQuery(n, above(bounds))})
                eddy.bind(POSITIONS, {})
                shares = []
                for _ in range(batches):
                    for _ in range(batch_rows // BATCH_ROWS):
                        eddy.run(make_rows(rng, BATCH_ROWS))
                    shares.append(_shares(eddy))
                steady = np.mean(shares[batches // 2 :], axis=0)
                away = [float(np.abs(own - steady).max()) for own in shares]
                longest = max(
                    longest, 1 + max((at for at, d in enumerate(away) if d > 0.1), default=-1)
                )
            bench.add(
                f"fig 9: workload {number}: micro-batches until tickets are steady, longest",
                longest + 1,
                "micro-batches",
                "all shares within 0.1 of where they stay",
                "4 s",
            )
            for operator, share in zip(eddy.operators, _shares(eddy), strict=True):
                bench.add(
                    f"fig 9: workload {number}: share of tickets, {operator.name}",
                    100 * float(share),
                    "%",
                    "with all five queries",
                )
            if number in MOST_TICKETS:
                _rank_of_expected(bench, number, eddy)
            _compare_with_best(bench, number, eddy)
            advance()


def _rank_of_expected(bench: Bench, number: int, eddy: SharedEddy) -> None:
    """Which place the filter has that has most tickets in the paper."""
    shares = dict(zip([o.name for o in eddy.operators], _shares(eddy), strict=True))
    name = MOST_TICKETS[number]
    bench.add(
        f"fig 9: workload {number}: place of filter {name} by tickets",
        1 + sum(share > shares[name] for share in shares.values()),
        "of 5",
        "it is the most selective" if number == 1 else "it serves most queries",
        "1",
    )


def _compare_with_best(bench: Bench, number: int, learnt: SharedEddy) -> None:
    """Compare the visits of an eddy that has learnt with those of the best of all orders."""
    rng = np.random.default_rng(bench.seed)
    queries = [SharedQuery(n, above(bounds)) for n, bounds in enumerate(WORKLOADS[number])]
    batches = [make_rows(rng, BATCH_ROWS) for _ in range(40)]
    least = min(
        _visits(make_eddy(queries, policy=AsWritten()), batches[:1], order)
        for order in itertools.permutations(range(len(queries)))
    )
    bench.add(
        f"fig 9: workload {number}: filters visited, times those of the best order",
        _visits(learnt, batches) / least,
        "times",
        f"at most 1.05; the best order has {least:.2f}"
        + ("; all orders have" if number == 1 else ""),
    )


def _visits(
    eddy: SharedEddy, batches: Sequence[Batch], order: Sequence[int] | None = None
) -> float:
    """Return how many filters a row visits."""
    if order is not None:
        eddy.policy.adopt(list(order))
    rows, visits = eddy.rows, eddy.visits
    for batch in batches:
        eddy.run(batch)
    return (eddy.visits - visits) / (eddy.rows - rows)


def _shares(eddy: SharedEddy) -> FloatArray:
    assert isinstance(eddy.policy, Tickets)
    return eddy.policy.shares()
