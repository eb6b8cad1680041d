"""Compares an engine with Spark on a join of streams, and checks that both give the same."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from eddyline.bench.harness import Bench, ratio
from eddyline.bench.joins_runs import Contest, Outcome, run_engine, run_rival
from eddyline.bench.joins_spark import STORES
from eddyline.errors import EddylineError

#: A run takes long, so there are at most so many rounds.
ROUNDS_MAX = 3


@dataclass(frozen=True)
class Compared:
    """All runs of a contest.

    Parameters
    ----------
    engines
        Runs of the engine: one before the first round, and one at the end of each.
    rivals
        Runs of Spark, one in each round; none without a rival.
    store
        The state store that Spark was faster with.

    """

    engines: list[Outcome]
    rivals: list[Outcome]
    store: str

    @property
    def seconds(self) -> list[float]:
        """Seconds of a micro-batch of the engine, by round."""
        return [each.seconds for each in self.engines[1:]]

    @property
    def control(self) -> float:
        """The engine's time compared with that of its run before."""
        return ratio(self.seconds, [each.seconds for each in self.engines[:-1]])


def run_rounds(bench: Bench, spark: Any, contest: Contest) -> Compared:
    """Run both in turn; raise if their results differ.

    In the first round Spark runs with each of its state stores, then with the faster one.
    """
    rounds = min(bench.rounds, ROUNDS_MAX)
    stores = STORES if contest.rival is not None else {}
    total = 1 + rounds + (rounds - 1 + len(stores) if stores else 0)
    tried: dict[str, Outcome] = {}
    rivals = []
    with bench.progress(contest.name, total) as advance:

        def done(outcome: Outcome) -> Outcome:
            advance()
            return outcome

        engines = [done(run_engine(spark, contest, bench.seed))]
        for name, store in stores.items():
            tried[name] = done(run_rival(spark, contest, store))
        best = min(tried, key=lambda name: tried[name].seconds, default="")
        for round_ in range(rounds):
            if best:
                is_first = round_ == 0
                rivals.append(
                    tried[best] if is_first else done(run_rival(spark, contest, STORES[best]))
                )
            engines.append(done(run_engine(spark, contest, bench.seed)))
    check_same(contest.name, engines, [*tried.values(), *rivals])
    return Compared(engines, rivals, best)


def check_same(name: str, own: list[Outcome], others: list[Outcome]) -> None:
    """Raise if a run has other results than the first."""
    for outcome in own + others:
        if (outcome.results, outcome.checksum) != (own[0].results, own[0].checksum):
            raise EddylineError(
                f"{name}: {outcome.results:,} results with the checksum {outcome.checksum}, but "
                f"{own[0].results:,} with {own[0].checksum} in the first run of the engine; the "
                f"two queries or their windows are not the same"
            )
    if not own[0].results:
        raise EddylineError(f"{name}: no results; the data does not fit the query")


def contend(bench: Bench, spark: Any, contest: Contest) -> None:
    """Run a contest and add its figures."""
    compared = run_rounds(bench, spark, contest)
    own = compared.engines[-1]
    batch_s, batch_rows = statistics.median(compared.seconds), contest.rows / own.batches
    spent = (
        f"{1e6 * batch_s / batch_rows:.2f} us a row, "
        f"{1e6 * batch_s * own.batches / own.results:.2f} us a result; "
        f"control {compared.control:.2f}"
    )
    name = contest.name
    if compared.rivals:
        rival = compared.rivals[-1]
        rival_seconds = [each.seconds for each in compared.rivals]
        bench.add(
            f"{name}: time, Spark / engine",
            ratio(rival_seconds, compared.seconds),
            "x",
            f"engine {spent}; Spark's {compared.store} store",
        )
    else:
        rival = None
        bench.add(f"{name}: time a row", 1e6 * batch_s / batch_rows, "us", spent)
    if rival is not None:
        bench.add(
            f"{name}: time from start to first results, Spark / engine",
            ratio(
                [each.first_result_s for each in compared.rivals],
                [each.first_result_s for each in compared.engines[1:]],
            ),
            "x",
            f"engine {own.first_result_s:.2f} s",
        )
    if own.matches:
        bench.add(
            f"{name}: candidates a match",
            own.candidates / own.matches,
            "candidates",
            f"{own.results:,} results of {contest.rows:,} rows",
        )
        _add_state(bench, contest, own, rival)
    _add_against(
        bench, f"{name}: bytes written", own.written_bytes, rival.written_bytes if rival else None
    )


def _add_state(bench: Bench, contest: Contest, own: Outcome, rival: Outcome | None) -> None:
    arrived = contest.rows / own.batches
    bench.add(
        f"{contest.name}: state rows, engine / rows of a micro-batch",
        own.state_rows / arrived,
        "x",
        f"{own.state_rows:,} rows" + (f"; Spark {rival.state_rows:,}" if rival else ""),
    )
    _add_against(
        bench, f"{contest.name}: state bytes", own.state_bytes, rival.state_bytes if rival else None
    )


def _add_against(bench: Bench, metric: str, own_bytes: int, rival_bytes: int | None) -> None:
    """Add bytes of the engine as a ratio, or as they are without a rival."""
    if rival_bytes is None:
        bench.add(metric, own_bytes / 1e6, "MB")
    else:
        bench.add(
            f"{metric}, Spark / engine", rival_bytes / own_bytes, "x", f"{own_bytes / 1e6:.2f} MB"
        )
