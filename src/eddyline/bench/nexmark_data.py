"""NEXMark: an auction site as three streams of persons, auctions and bids, made from a seed.

Of 50 events one is a person, three are auctions and 46 are bids. Ids grow. Most auctions belong to
a few hot sellers, and half of the bids go to hot auctions, which change all the time.

References
----------
Tucker et al., NEXMark: a benchmark for queries over data streams, 2002; proportions, hot ratios and
columns as in the generators of Apache Beam and Flink.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.arrays import IntArray

FIRST_ID = 1000
EVENTS_IN_TURN = 50
AUCTIONS_IN_TURN = 3
ACTIVE_PERSONS = 1000
AUCTIONS_IN_FLIGHT = 100
#: Every so many ids, one is hot.
HOT_EVERY = 100
FIRST_CATEGORY, CATEGORIES = 10, 5
#: 30 s after a full minute, so that minutes and micro-batches do not coincide.
START_US = 1_700_000_010_000_000
BATCH_US = 60_000_000

STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = tuple(
    "Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne".split(",")
)
FIRST_NAMES = tuple("Peter Paul Luke John Saul Vicky Kate Julie Sarah Deiter Walter".split())
LAST_NAMES = tuple("Shultz Abrams Spencer White Bartels Walton Smith Jones Noris".split())
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")


@dataclass(frozen=True)
class Events:
    """The events of one micro-batch, a table for each stream."""

    persons: pa.Table
    auctions: pa.Table
    bids: pa.Table


def make_events(rng: np.random.Generator, batch: int, events: int) -> Events:
    """Return the events of a micro-batch.

    Parameters
    ----------
    rng
        Random numbers.
    batch
        Number of the micro-batch, from 0: ids and times go on where those of the last one ended.
    events
        Number of events, a multiple of 50.

    Examples
    --------
    >>> events = make_events(np.random.default_rng(0), 2, 500)
    >>> events.persons.num_rows, events.auctions.num_rows, events.bids.num_rows
    (10, 30, 460)
    >>> events.persons["id"][0].as_py(), events.auctions["id"][0].as_py()
    (1020, 1060)

    """
    numbers = np.arange(batch * events, (batch + 1) * events)
    turns, places = np.divmod(numbers, EVENTS_IN_TURN)
    times = START_US + numbers * (BATCH_US // events)
    is_person, is_bid = places == 0, places > AUCTIONS_IN_TURN
    is_auction = ~(is_person | is_bid)
    newest_auction = AUCTIONS_IN_TURN * turns + np.minimum(places, AUCTIONS_IN_TURN) - 1
    return Events(
        _persons(rng, turns[is_person], times[is_person]),
        _auctions(rng, newest_auction[is_auction], turns[is_auction], times[is_auction]),
        _bids(rng, newest_auction[is_bid], turns[is_bid], times[is_bid]),
    )


def _persons(rng: np.random.Generator, numbers: IntArray, times: IntArray) -> pa.Table:
    count = len(numbers)
    first, last = _pick(rng, FIRST_NAMES, count), _pick(rng, LAST_NAMES, count)
    cards = rng.integers(0, 10_000, (count, 4))
    return pa.table(
        {
            "id": FIRST_ID + numbers,
            "name": [f"{one} {other}" for one, other in zip(first, last, strict=True)],
            "email": [f"{one}@{other}.com".lower() for one, other in zip(first, last, strict=True)],
            "credit_card": [" ".join(f"{part:04}" for part in card) for card in cards],
            "city": _pick(rng, CITIES, count),
            "state": _pick(rng, STATES, count),
            "extra": _extra(rng, count, 100),
            "ts": _timestamps(times),
        }
    )


def _auctions(
    rng: np.random.Generator, numbers: IntArray, newest_person: IntArray, times: IntArray
) -> pa.Table:
    count = len(numbers)
    first_price = _prices(rng, count)
    return pa.table(
        {
            "id": FIRST_ID + numbers,
            "item": [f"item {number}" for number in rng.integers(0, 10_000, count)],
            "description": _extra(rng, count, 100),
            "initial_bid": first_price,
            "reserve": first_price + _prices(rng, count),
            "expires": _timestamps(times + rng.integers(1, 2 * BATCH_US, count)),
            "seller": FIRST_ID + _active(rng, newest_person, ACTIVE_PERSONS, 0.75),
            "category": FIRST_CATEGORY + rng.integers(0, CATEGORIES, count),
            "extra": _extra(rng, count, 200),
            "ts": _timestamps(times),
        }
    )


def _bids(
    rng: np.random.Generator, newest_auction: IntArray, newest_person: IntArray, times: IntArray
) -> pa.Table:
    count = len(times)
    channels = _pick(rng, CHANNELS, count)
    return pa.table(
        {
            "auction": FIRST_ID + _active(rng, newest_auction, AUCTIONS_IN_FLIGHT, 0.5),
            "bidder": FIRST_ID + _active(rng, newest_person, ACTIVE_PERSONS, 0.75),
            "price": _prices(rng, count),
            "channel": channels,
            "url": [f"https://www.nexmark.com/{name.lower()}/item.htm" for name in channels],
            "extra": _extra(rng, count, 50),
            "ts": _timestamps(times),
        }
    )


def _active(rng: np.random.Generator, newest: IntArray, active: int, hot: float) -> IntArray:
    """Return numbers of recent persons or auctions, hot ones with the given probability."""
    recent = newest - rng.integers(0, np.minimum(active, newest + 1))
    is_hot = rng.random(len(newest)) < hot
    return np.asarray(np.where(is_hot, newest // HOT_EVERY * HOT_EVERY, recent))


def _prices(rng: np.random.Generator, count: int) -> IntArray:
    return np.asarray(np.round(100 * 10 ** (6 * rng.random(count))), dtype=np.int64)


def _pick(rng: np.random.Generator, words: tuple[str, ...], count: int) -> list[str]:
    return [words[number] for number in rng.integers(0, len(words), count)]


def _extra(rng: np.random.Generator, count: int, length: int) -> list[str]:
    """Return texts that make rows as wide as they are in practice."""
    letters = bytes(rng.integers(97, 123, 4096 + length, dtype=np.uint8)).decode()
    return [letters[first : first + length] for first in rng.integers(0, 4096, count)]


def _timestamps(times_us: IntArray) -> pa.Array:
    return pa.array(times_us, pa.timestamp("us", "UTC"))
