"""Selections and joins of many queries: Eddyline against the plans that CACQ was compared with.

Stock quotes are joined with articles about them; every query has a selection on quotes. PushDown
selects first and has a join for each query, PullUp has one join and selects from its results
(NiagaraCQ). Both are built here from the same SteMs and the same grouped filter.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 5.3,
figures 10 and 11.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.arrays import Bitmaps, FloatArray, IntArray
from eddyline.bench.harness import Bench, ratio
from eddyline.bench.joins_workload import WINDOW_US
from eddyline.fabric.shared.eddy import SharedEddy
from eddyline.fabric.shared.query import SharedQuery
from eddyline.joins.combinations import Combinations, any_bit
from eddyline.joins.join import Join
from eddyline.joins.keys import key_column
from eddyline.joins.plan import JoinQuery, KeyRef, Role
from eddyline.joins.run import Run
from eddyline.joins.stem import SteM
from eddyline.operators import Batch, ColumnReader, RowPredicate
from eddyline.operators.bitmaps import bit, words_for
from eddyline.operators.domain import Floating

STOCKS, ARTICLES = Role(0), Role(1)
STOCK_SCHEMA = pa.schema([("price", pa.float64())])
ARTICLE_SCHEMA = pa.schema([("text", pa.string())])
PRICES = [ColumnReader("price")]
UDF_QUERIES = 100
ARTICLE = "x" * 600  # between 200 bytes and a kilobyte, as in the paper


@dataclass(frozen=True)
class Update:
    """Quotes and articles that arrive together: the fixed size update of the paper.

    Parameters
    ----------
    prices
        One for each stock.
    articles_each
        Articles about each stock.

    """

    prices: FloatArray
    articles_each: int

    @classmethod
    def draw(cls, rng: np.random.Generator, stocks: int, articles_each: int = 1) -> Update:
        """Return quotes of so many stocks, with so many articles each."""
        return cls(100.0 * (1.0 - rng.random(stocks)), articles_each)

    def articles(self, words: int) -> Run:
        """Return the articles; every query wants all of them."""
        symbols = np.repeat(np.arange(len(self.prices)), self.articles_each)
        texts = pa.array([ARTICLE]).take(pa.array(np.zeros(len(symbols), dtype=np.int64)))
        return _run(symbols, np.full((len(symbols), words), ~np.uint64(0)), {"text": texts})

    @property
    def batch(self) -> Batch:
        """The quotes as a batch."""
        return Batch([pa.array(self.prices)], PRICES)

    def quotes(self, interested: Bitmaps) -> Run:
        """Return the quotes that some query wants, with the queries."""
        rows = np.flatnonzero(any_bit(interested))
        return _run(rows, interested[rows], {"price": pa.array(self.prices[rows])})


def _run(symbols: IntArray, interested: Bitmaps, payload: dict[str, pa.Array]) -> Run:
    times = np.zeros(len(symbols), dtype=np.int64)
    return Run([key_column(pa.array(symbols))], times, {0: interested}, pa.record_batch(payload))


def _join_of(queries: int, stems: Mapping[int, SteM] | None = None) -> Join:
    equal = (frozenset([KeyRef(STOCKS, 0), KeyRef(ARTICLES, 0)]),)
    windows = dict.fromkeys([STOCKS, ARTICLES], WINDOW_US)
    return Join([JoinQuery(n, (STOCKS, ARTICLES), equal, windows) for n in range(queries)], stems)


class Plan(abc.ABC):
    """Base of the plans: a grouped filter or functions for the selections, and one join.

    Parameters
    ----------
    select
        Returns the queries that want each row of a batch of prices.
    queries
        Number of queries.

    """

    def __init__(self, select: Callable[[Batch], Bitmaps], queries: int) -> None:
        self._select = select
        self._queries = queries
        self._join = _join_of(self._joined_queries)
        self._words = words_for(self._joined_queries)
        self.probes = 0
        self.results = 0

    @property
    def _joined_queries(self) -> int:
        return self._queries

    def run(self, update: Update) -> None:
        """Process an update; what it stored is discarded afterwards."""
        self.probes = self.results = 0
        self._process(update)
        for stem in self._join.stems.values():
            self.probes += stem.counts.probes
            stem.counts.probes = 0
            stem.old.clear()

    @abc.abstractmethod
    def _process(self, update: Update) -> None:
        """Select and join."""

    def _finish(self, found: Combinations) -> None:
        """Make the rows of results, and count them for each query."""
        found.payload(STOCKS, STOCK_SCHEMA)
        found.payload(ARTICLES, ARTICLE_SCHEMA)
        self.results += int(np.bitwise_count(found.bitmaps()).sum())


class Cacq(Plan):
    """Selections first, for all queries at once; one join that carries the queries of each row."""

    def _process(self, update: Update) -> None:
        quotes = update.quotes(self._select(update.batch))
        self._join.run({0: quotes, 1: update.articles(self._words)}, self._finish)


class PullUp(Plan):
    """One join of everything; the selections are applied to its results."""

    @property
    def _joined_queries(self) -> int:
        return 1

    def _process(self, update: Update) -> None:
        quotes = update.quotes(np.ones((len(update.prices), 1), dtype=np.uint64))
        self._join.run({0: quotes, 1: update.articles(self._words)}, self._finish)

    def _finish(self, found: Combinations) -> None:
        prices = found.payload(STOCKS, STOCK_SCHEMA).field("price")
        found.payload(ARTICLES, ARTICLE_SCHEMA)
        wanted = self._select(Batch([prices], PRICES))
        self.results += int(np.bitwise_count(wanted).sum())


class PushDown(Plan):
    """Selections first; then a join for each query, all with one SteM of articles."""

    def __init__(self, select: Callable[[Batch], Bitmaps], queries: int) -> None:
        super().__init__(select, queries)
        self._articles = SteM([])
        self._joins = [_join_of(1, {ARTICLES.stream: self._articles}) for _ in range(queries)]

    def _process(self, update: Update) -> None:
        interested = self._select(update.batch)
        self._articles.old[:] = [update.articles(1)]
        for slot, join in enumerate(self._joins):
            word, mask = bit(slot)
            wanted = (interested[:, word] & mask).astype(bool)
            join.run({0: update.quotes(wanted[:, None].astype(np.uint64))}, self._finish)
            join.stems[STOCKS.stream].old.clear()
        self.probes += self._articles.counts.probes
        self._articles.counts.probes = 0


def _grouped_filter(constants: FloatArray) -> Callable[[Batch], Bitmaps]:
    price = Floating()
    eddy = SharedEddy({"price": price}, seed=0)
    eddy.add(
        {
            n: SharedQuery(n, {"price": price.compare(">", float(c))})
            for n, c in enumerate(constants)
        }
    )
    eddy.bind({"price": 0}, {})
    return lambda batch: eddy.route(batch, np.arange(batch.rows)).interested


class CountedFunctions:
    """Python functions of users, one for each query, and how often they were called.

    Parameters
    ----------
    constants
        What each function compares a price with.

    """

    def __init__(self, constants: Sequence[float]) -> None:
        self.calls = 0
        self._eddy = SharedEddy({}, seed=0)
        names = [f"udf_{number}" for number in range(len(constants))]
        self._eddy.add({n: SharedQuery(n, needs=(name,)) for n, name in enumerate(names)})
        predicates = {
            name: RowPredicate(name, (0,), self._function(constant))
            for name, constant in zip(names, constants, strict=True)
        }
        self._eddy.bind({}, predicates)

    def _function(self, constant: float) -> Callable[[float], bool]:
        def is_wanted(price: float) -> bool:
            self.calls += 1
            return price > constant

        return is_wanted

    def select(self, batch: Batch) -> Bitmaps:
        """Return the queries whose functions accept each row."""
        return self._eddy.route(batch, np.arange(batch.rows)).interested


def plans(bench: Bench) -> None:
    """Time three plans for selections and joins, with 1 to 200 queries (figures 10 and 11 a)."""
    stocks = 225 if bench.quick else 2_250
    for queries in (1, 20) if bench.quick else (1, 10, 50, 100, 200):
        rng = np.random.default_rng(bench.seed)
        constants = 100.0 * rng.random(queries)
        constants[0] = 0.0  # so that all queries together want every quote
        update = Update.draw(rng, stocks)
        select = _grouped_filter(constants)
        made = {kind.__name__: kind(select, queries) for kind in (Cacq, PullUp, PushDown)}
        variants: dict[str, Callable[[], object]] = {
            name: _repeat(plan, update, 3) for name, plan in made.items()
        }
        seconds = bench.in_turn(f"fig 11 a: {queries} queries", variants)
        assert len({plan.results for plan in made.values()}) == 1
        papers = {
            "PullUp": "above 1 for few queries, slightly below for many",
            "PushDown": "above 1",
        }
        for rival, paper in papers.items():
            bench.add(
                f"figs 10, 11 a: {queries} queries: time, {rival} / CACQ",
                ratio(seconds[rival], seconds["Cacq"]),
                "x",
                f"probes: {made[rival].probes:,} against {made['Cacq'].probes:,}",
                paper,
            )


def _repeat(plan: Plan, update: Update, times: int) -> Callable[[], None]:
    def run_plan() -> None:
        for _ in range(times):
            plan.run(update)

    return run_plan


def functions(bench: Bench) -> None:
    """Count calls of Python functions with 1, 10 and 100 articles for each quote (figure 11 b)."""
    stocks, queries = (50, 10) if bench.quick else (2_250, UDF_QUERIES)
    rng = np.random.default_rng(bench.seed)
    constants = (100.0 * rng.random(queries)).tolist()
    with bench.progress("fig 11 b: functions", 6) as advance:
        for articles in (1, 10, 100):
            update = Update.draw(rng, stocks, articles)
            calls, results = {}, set()
            for kind in (Cacq, PullUp):
                counted = CountedFunctions(constants)
                plan = kind(counted.select, queries)
                plan.run(update)
                calls[kind.__name__] = counted.calls
                results.add(plan.results)
                advance()
            assert len(results) == 1
            bench.add(
                f"fig 11 b: {queries} functions, {articles} articles a quote: calls",
                calls["Cacq"],
                "calls",
                f"PullUp: {calls['PullUp']:,}",
                "functions run before the join",
            )
