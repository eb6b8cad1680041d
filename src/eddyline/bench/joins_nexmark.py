"""NEXMark queries that join, by an engine and by Spark's own joins.

Q3 and Q20 have no window in NEXMark, so their state grows without bound. Here a row meets rows that
are less than a minute older or younger, on both sides. Q8 joins within minutes of the clock, as in
NEXMark. Results are all pairs: Q8 does not remove duplicates.
"""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any

import numpy as np

from eddyline.bench.harness import Bench, local_spark
from eddyline.bench.joins_case import JoinCase, Side, Streams
from eddyline.bench.joins_runs import Contest
from eddyline.bench.joins_versus import contend
from eddyline.bench.nexmark_data import BATCH_US, FIRST_CATEGORY, make_events

BATCHES = 5
WINDOW_MS = BATCH_US // 1000
SIDE_ROWS = 10_000
_DERIVED = {
    "persons": {"minute": "date_trunc('MINUTE', ts)"},
    "auctions": {"minute": "date_trunc('MINUTE', ts)"},
    "bids": {"side_key": f"auction % {SIDE_ROWS}"},
}


def _side(alias: str, stream: str, columns: str, condition: str | None = None) -> Side:
    return Side(alias, stream, tuple(columns.split()), WINDOW_MS, condition)


CASES = (
    JoinCase(
        "NEXMark Q3, windowed",
        [
            _side("p", "persons", "name city state", "p.state IN ('OR', 'ID', 'CA')"),
            _side("a", "auctions", "id", f"a.category = {FIRST_CATEGORY}"),
        ],
        [("a.seller", "p.id")],
    ),
    JoinCase(
        "NEXMark Q8",
        [_side("p", "persons", "id name"), _side("a", "auctions", "id reserve")],
        [("a.seller", "p.id"), ("a.minute", "p.minute")],
    ),
    JoinCase(
        "NEXMark Q20, windowed",
        [
            _side(
                "a", "auctions", "item initial_bid reserve seller", f"a.category = {FIRST_CATEGORY}"
            ),
            _side("b", "bids", "auction bidder price channel url"),
        ],
        [("b.auction", "a.id")],
    ),
    JoinCase(
        "NEXMark person-auction-bid",
        [
            _side("p", "persons", "id name"),
            _side("a", "auctions", "id category"),
            _side("b", "bids", "bidder price"),
        ],
        [("a.seller", "p.id"), ("b.auction", "a.id")],
    ),
    JoinCase(
        "NEXMark seller-auction-bid-bidder",
        [
            _side("p", "persons", "id name"),
            _side("a", "auctions", "id category"),
            _side("b", "bids", "price"),
            _side("q", "persons", "id name"),
        ],
        [("a.seller", "p.id"), ("b.auction", "a.id"), ("q.id", "b.bidder")],
    ),
)


def write_streams(bench: Bench, folder: pathlib.Path) -> Streams:
    """Write the three streams."""
    events = 1_000 if bench.quick else 30_000
    rng = np.random.default_rng(bench.seed)
    batches = []
    with bench.progress("making data: NEXMark", BATCHES) as advance:
        for batch in range(BATCHES):
            batches.append(make_events(rng, batch, events))
            advance()
    streams = Streams(folder, _DERIVED)
    for name in ("persons", "auctions", "bids"):
        streams.write(name, [getattr(each, name) for each in batches])
    return streams


def side_input(streams: Streams) -> Contest:
    """Return Q13: bids with a bounded side input.

    The engine stores which bids have a partner, and looks the partner up again when results are
    read.
    """

    def table(spark: Any) -> Any:
        return spark.range(SIDE_ROWS).selectExpr("id AS key", "concat('side ', id) AS value")

    def rival(spark: Any) -> Any:
        from pyspark.sql import functions as F

        joined = streams.read(spark, "bids").join(table(spark), F.expr("side_key = key"))
        return joined.select("auction", "bidder", "price", "value")

    sql = (
        "SELECT b.auction, b.bidder, b.price, s.value FROM bids b, side s WHERE b.side_key = s.key"
    )
    return Contest("NEXMark Q13", ("bids",), streams, sql, rival, {"side": table})


def nexmark(bench: Bench) -> None:
    """Compare an engine with Spark on queries of NEXMark."""
    spark = local_spark()
    with tempfile.TemporaryDirectory() as folder:
        streams = write_streams(bench, pathlib.Path(folder))
        contests = [Contest.of(case, streams) for case in CASES]
        contests.insert(2, side_input(streams))
        for contest in contests:
            contend(bench, spark, contest)
