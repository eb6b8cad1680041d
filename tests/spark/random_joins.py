"""Random joins of streams: their text for an engine, and what batch SQL says of the same rows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

STREAMS = ("light", "temp", "noise", "wind")
FILTERS = (
    "{}.v > 3",
    "{}.v BETWEEN 1 AND 8",
    "{}.room = 'hall'",
    "{}.k IS NOT NULL",
    "{}.v % 3 <> 1",
    "odd({}.v)",
    "({0}.v > 5 OR {0}.room = 'attic')",
)
ACROSS = ("{}.v < {}.v", "abs({}.v - {}.v) < 4", "{}.v + {}.k <> 7", "{}.room <> {}.room")
EQUAL = ("{}.k = {}.k", "{}.room = {}.room", "{}.v = {}.v", "{}.k = {}.v")


@dataclass(frozen=True)
class RandomJoin:
    """A join of streams.

    Parameters
    ----------
    sql
        Without windows.
    text
        With windows, as an engine takes it.
    windows_s
        By alias, the window in seconds.

    """

    sql: str
    text: str
    windows_s: Mapping[str, int]


def random_join(rng: random.Random, streams_max: int) -> RandomJoin:
    """Return a join of 2 to so many streams, some of them several times."""
    aliases = [f"x{n}" for n in range(rng.randint(2, streams_max))]
    names = {alias: rng.choice(STREAMS) for alias in aliases}
    one_key = rng.choice(EQUAL[:2]) if rng.random() < 0.5 else None
    links = [one_key or rng.choice(EQUAL) for _ in aliases]
    if rng.random() < 0.15:  # another comparison is the only link
        links[-1] = rng.choice(ACROSS[:2])
    conditions = [
        links[n].format(alias, rng.choice(aliases[:n])) for n, alias in enumerate(aliases) if n
    ]
    for chance, kinds in ((0.4, EQUAL), (0.4, ACROSS)):
        if rng.random() < chance:
            conditions.append(rng.choice(kinds).format(*rng.sample(aliases, 2)))
    conditions += [rng.choice(FILTERS).format(alias) for alias in aliases if rng.random() < 0.35]
    rng.shuffle(conditions)
    items = ", ".join(f"{alias}.v AS v{n}" for n, alias in enumerate(aliases))
    tail = f" WHERE {' AND '.join(conditions)}"
    whole, own = rng.randint(3, 40), {}
    for alias in aliases:
        if rng.random() < 0.3:
            own[alias] = rng.randint(3, 40)
    sources = [f"{names[alias]} {alias}" for alias in aliases]
    windowed = [
        f"{source} [RANGE {own[alias]} SECONDS]" if alias in own else source
        for alias, source in zip(aliases, sources, strict=True)
    ]
    select = f"SELECT {items} FROM "
    return RandomJoin(
        f"{select}{', '.join(sources)}{tail}",
        f"{select}{', '.join(windowed)}{tail} WINDOW {whole} SECONDS",
        {alias: own.get(alias, whole) for alias in aliases},
    )
