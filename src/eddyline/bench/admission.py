"""Adding rules to an engine: mixed ones of some forty shapes, and plain comparisons.

Rules of real sets repeat a few shapes with other constants, over a stream of many columns. They are
added one by one, as users do, and together.
"""

from __future__ import annotations

import contextlib
import pathlib
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eddyline.bench.cpu_time import cpu_seconds
from eddyline.bench.harness import Bench, local_spark

SCHEMA = (
    "id bigint, ts timestamp, day date, user_name string, host string, ip string, method string, "
    "path string, agent string, referrer string, country string, city string, status int, "
    "bytes_in bigint, bytes_out bigint, duration_ms double, cpu double, memory_mb int, port int, "
    "retries tinyint, score float, price decimal(10,2), is_bot boolean, is_admin boolean, "
    "severity int, message string, category string, device string, os string, browser string, "
    "session string, zone int, queue int, latency_ms int"
)
#: Conditions; w, v and u are words, d is a digit, n and m are larger numbers, s is a status.
SHAPES = (
    "message LIKE '%{w}%'",
    "message LIKE '{w}%' AND severity >= {d}",
    "path LIKE '%/{w}' AND method = '{v}'",
    "lower(host) = '{w}'",
    "lower(country) = '{w}' AND status >= {n}",
    "length(message) > {n}",
    "length(path) > {n} AND status = {s}",
    "substring(ip, 1, {d}) = '{w}'",
    "substring(session, {d}, 3) = '{w}' AND is_admin",
    "message RLIKE '^{w}[0-9]+'",
    "agent RLIKE '({w}|{v})' AND status > {n}",
    "regexp_extract(message, 'code=([a-z]+)', 1) = '{w}'",
    "bytes_in + bytes_out > {n}",
    "duration_ms / {d} > {n} AND status < {s}",
    "cpu * memory_mb > {n}",
    "latency_ms - {n} > {d} OR retries > {d}",
    "status IN ({s}, {n}, {m})",
    "country IN ('{w}', '{v}') AND severity > {d}",
    "category NOT IN ('{w}', '{v}', '{u}') AND lower(os) = '{w}'",
    "duration_ms BETWEEN {n} AND {n}.5",
    "port BETWEEN {n} AND {m} AND host LIKE '{w}%'",
    "status >= {s} OR message LIKE '%{w}%'",
    "(severity > {d} OR cpu > 0.{n}) AND country = '{w}'",
    "NOT (status = {s} AND method = '{v}') AND upper(city) = '{w}'",
    "NOT message LIKE '%{w}%' AND severity >= {d}",
    "is_private(ip) AND status = {s}",
    "is_private(ip) AND message LIKE '%{w}%'",
    "risk(user_name, country) > 0.{n} AND severity > {d}",
    "is_private(substring(ip, 1, {d}))",
    "e.zone = {d} AND e.queue % {d} = 1",
    "coalesce(referrer, '{w}') = '{v}'",
    "trim(browser) <> '{w}' AND length(agent) < {n}",
    "concat(os, device) = '{w}{v}'",
    "price > {n}.25 AND abs(latency_ms) > {n}",
    "day >= DATE'2024-01-1{d}' AND lower(category) LIKE '{w}%'",
    "hour(ts) BETWEEN {d} AND 23 AND severity >= {d}",
    "CASE WHEN is_bot THEN status > {s} ELSE status < {n} END",
    "replace(path, '/', '') = '{w}' OR instr(path, '{v}') > {d}",
)
#: Items of SELECT beside `id`, for every fourth rule.
ITEMS = ("upper(user_name) AS who", "bytes_in + {n} AS total", "concat(host, ':', path) AS url")
_WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike".split()
MIXED, MANY = 338, 10_000


def parts(bench: Bench) -> dict[str, Callable[[], None]]:
    """Return the experiments by name."""
    return {"admission": lambda: _admission(bench)}


def mixed_rules(count: int, seed: int = 0) -> dict[str, str]:
    """Return rules by name: all shapes in turn, with other constants each time, shuffled."""
    rng = random.Random(seed)
    rules = []
    for number in range(count):
        items = ["id", *([ITEMS[number // 4 % len(ITEMS)]] if number % 4 == 0 else [])]
        shape = SHAPES[number % len(SHAPES)]
        text = f"SELECT {', '.join(items)} FROM events e WHERE {shape}"
        rules.append((f"rule {number}", _with_constants(text, rng)))
    rng.shuffle(rules)
    return dict(rules)


def _with_constants(shape: str, rng: random.Random) -> str:
    words = {name: f"{rng.choice(_WORDS)}{rng.randrange(1_000)}" for name in "wvu"}

    def constant(place: re.Match[str]) -> str:
        if place[1] in words:
            return words[place[1]]
        status = str(rng.choice([200, 301, 404, 500, 503]))
        least, most = {"d": (1, 9), "n": (100, 999), "m": (1_000, 9_999)}.get(place[1], (0, 1))
        return status if place[1] == "s" else str(rng.randrange(least, most))

    return re.sub(r"\{(\w)\}", constant, shape)


def plain_rules(count: int, seed: int = 0) -> dict[str, str]:
    """Return rules that compare columns with constants, by name."""
    rng = random.Random(seed)
    return {
        f"rule {number}": f"SELECT id FROM events WHERE status > {rng.randrange(10**6)} "
        f"AND country = '{rng.choice(_WORDS)}{rng.randrange(10**6)}'"
        for number in range(count)
    }


def _admission(bench: Bench) -> None:
    """Add rules one by one and together; the first set is added in a JVM that was just started."""
    spark = local_spark()
    mixed = mixed_rules(78 if bench.quick else MIXED)
    many = 500 if bench.quick else MANY
    plain = plain_rules(many)
    one_by_one, together = "one by one", "together"
    for what, rules, ways, limit in (
        ("mixed rules, in a JVM that was just started", mixed, [one_by_one], "at most 5 ms"),
        ("mixed rules", mixed, [one_by_one, together], "at most 5 ms"),
        ("mixed rules", mixed_rules(many), [together], "at most 0.5 ms"),
        ("comparisons", plain, [one_by_one, together], "at most 0.5 ms"),
    ):
        for way in ways:
            with _engine(spark) as engine, _calls() as calls:
                began, cpu_before = time.perf_counter(), cpu_seconds()
                _add(engine, rules, one_by_one=way == one_by_one)
                seconds, cpu_after = time.perf_counter() - began, cpu_seconds()
                bench.add(
                    f"adding {len(rules):,} {what}, {way}: time a rule",
                    1e3 * seconds / len(rules),
                    "ms",
                    limit,
                )
                if cpu_before is not None and cpu_after is not None:
                    bench.add(
                        f"adding {len(rules):,} {what}, {way}: CPU time a rule, with Spark's",
                        1e3 * (cpu_after - cpu_before) / len(rules),
                        "ms",
                    )
                bench.add(
                    f"adding {len(rules):,} {what}, {way}: calls to Spark a rule",
                    len(calls) / len(rules),
                    "calls",
                )


def _add(engine: Any, rules: Mapping[str, str], one_by_one: bool) -> None:
    if not one_by_one:
        engine.add(rules)
        return
    for name, text in rules.items():
        engine.query(name, text)


@contextlib.contextmanager
def _engine(spark: Any) -> Iterator[Any]:
    """Give an engine with a stream of events and two functions."""
    from eddyline.spark.engine.engine import Engine

    with tempfile.TemporaryDirectory(prefix="eddyline-admission-") as folder:
        source = pathlib.Path(folder) / "source"
        source.mkdir()
        with Engine(spark, pathlib.Path(folder) / "engine") as engine:
            engine.stream("events", spark.readStream.schema(SCHEMA).parquet(str(source)))
            engine.function("is_private", lambda ip: bool(ip) and ip.startswith("10."))
            engine.function("risk", lambda user, country: len(user) / 100, returns="double")
            yield engine


@contextlib.contextmanager
def _calls() -> Iterator[list[str]]:
    """Give the list of calls to Spark's side meanwhile, without those that release memory."""
    from py4j.clientserver import ClientServerConnection  # type: ignore[import-untyped]

    made: list[str] = []
    send = ClientServerConnection.send_command

    def note(connection: Any, command: str) -> Any:
        if not command.startswith("m"):
            made.append(command)
        return send(connection, command)

    ClientServerConnection.send_command = note
    try:
        yield made
    finally:
        ClientServerConnection.send_command = send
