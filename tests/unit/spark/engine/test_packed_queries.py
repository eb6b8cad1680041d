"""Queries come out of their packed form as they were."""

from __future__ import annotations

import pickle
import random

import pytest

from eddyline.fabric.shared.query import Clause, SharedQuery
from eddyline.operators.domain import Domain, Floating, Text, Whole
from eddyline.operators.value_set import NOT_NULL, NOTHING, ONLY_NULL, ValueSet
from eddyline.spark.engine.packed_queries import pack

COLUMNS: dict[str, Domain] = {"a": Whole(), "x": Floating(), "t": Text(), "big": Whole(scale=2)}


def random_set(rng: random.Random, domain: Domain) -> ValueSet:
    if rng.random() < 0.1:
        return rng.choice([NOTHING, NOT_NULL, ONLY_NULL])
    number = rng.choice([1, 300, -70_000, 2**40, 9 * 10**17])
    constants = {"t": f"x{number}é", "x": number / 3}
    name = next(name for name, own in COLUMNS.items() if own is domain)
    values = domain.compare(rng.choice(["=", "<>", "<", ">="]), constants.get(name, number))
    return values if rng.random() < 0.7 else values | random_set(rng, domain)


def random_clauses(rng: random.Random) -> tuple[Clause, ...]:
    """Return clauses of a few forms, so that some queries have the same."""

    def accepts(count: int) -> dict[str, ValueSet]:
        return {name: random_set(rng, COLUMNS[name]) for name in list(COLUMNS)[:count]}

    return tuple(
        rng.choice(
            [
                Clause(),
                Clause(accepts(2)),
                Clause(accepts(1), ("g(b)",)),
                Clause(accepts(1), terms=(accepts(2), accepts(3))),
            ]
        )
        for _ in range(rng.randint(1, 2))
    )


@pytest.mark.parametrize("seed", range(10))
def test_random_queries_come_out_as_they_were(seed: int) -> None:
    rng = random.Random(seed)
    queries = {}
    for slot in rng.sample(range(1_000), 200):
        names = rng.sample(list(COLUMNS), rng.randrange(4))
        accepts = {name: random_set(rng, COLUMNS[name]) for name in names}
        needs = ("f(a)",) if rng.random() < 0.2 else ()
        clauses = random_clauses(rng) if rng.random() < 0.5 else ()
        number = rng.randrange(-(2**40), 2**40)
        queries[slot] = SharedQuery(number, accepts, needs, clauses, rng.random() < 0.5)
    unpacked = pickle.loads(pack(queries.items()))
    assert unpacked == queries
    assert repr(unpacked) == repr({slot: queries[slot] for slot in sorted(queries)})


def test_queries_of_one_shape_take_a_few_bytes_each() -> None:
    rng = random.Random(0)
    queries = {
        slot: SharedQuery(slot + 1, {name: ValueSet((rng.randrange(10**6),)) for name in "ab"})
        for slot in range(10_000)
    }
    assert len(pack(queries.items())) / len(queries) < 12  # as pickled objects: 65


def test_queries_with_clauses_of_one_form_take_a_few_bytes_each() -> None:
    rng = random.Random(0)

    def above() -> dict[str, ValueSet]:
        return {name: ValueSet((rng.randrange(10**6),)) for name in "ab"}

    queries = {
        slot: SharedQuery(slot, needs=("f(a)",), clauses=(Clause(above(), terms=(above(),)),))
        for slot in range(10_000)
    }
    assert len(pack(queries.items())) / len(queries) < 20
    unpacked = pickle.loads(pack(queries.items()))
    assert unpacked == queries
