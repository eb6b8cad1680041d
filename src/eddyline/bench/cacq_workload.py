"""Rows and queries of the experiments of the paper on CACQ.

The stream has five integer attributes a to e, uniform in [0, 100). Random queries have a predicate
on each attribute with a chance of one half: <, <=, > or >= and a random constant.

References
----------
Madden et al., Continuously Adaptive Continuous Queries over Streams, SIGMOD 2002, section 3.2.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.fabric.shared.eddy import SharedEddy
from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators import Batch, ColumnReader
from eddyline.operators.domain import Domain, Whole
from eddyline.operators.value_set import ValueSet
from eddyline.ordering import Policy

COLUMNS = ["a", "b", "c", "d", "e"]
POSITIONS = {name: position for position, name in enumerate(COLUMNS)}
READERS = [ColumnReader(name) for name in COLUMNS]
INTEGERS = {name: Whole() for name in COLUMNS}
VALUES = 100
BATCH_ROWS = 4_096


def make_rows(
    rng: np.random.Generator, rows: int, floats: bool = False, values: int = VALUES
) -> Batch:
    """Return a batch of random rows, with so many different values in each column."""
    draw = (lambda: rng.random(rows) * values) if floats else lambda: rng.integers(0, values, rows)
    return Batch([pa.array(draw()) for _ in COLUMNS], READERS)


def above(bounds: Mapping[str, int]) -> dict[str, ValueSet]:
    """Return the values above a bound, for each of some columns."""
    return {name: INTEGERS[name].compare(">", bound) for name, bound in bounds.items()}


def random_queries(
    rng: np.random.Generator, count: int, domains: Mapping[str, Domain]
) -> list[SharedQuery]:
    """Return random queries, numbered from 0; matches are only counted."""
    queries = []
    for number in range(count):
        accepts: dict[str, ValueSet] = {}
        while not accepts:
            for name, domain in domains.items():
                if rng.random() < 0.5:
                    whole = isinstance(domain, Whole)
                    constant = int(rng.integers(0, VALUES)) if whole else rng.random() * VALUES
                    sign = ("<", "<=", ">", ">=")[rng.integers(4)]
                    accepts[name] = domain.compare(sign, constant)
        queries.append(SharedQuery(number, accepts, is_stored=False))
    return queries


def make_eddy(
    queries: Sequence[SharedQuery],
    domains: Mapping[str, Domain] = INTEGERS,
    policy: Policy | None = None,
) -> SharedEddy:
    """Return an eddy with the queries, in slots from 0 on, ready to run."""
    eddy = SharedEddy(domains, policy, seed=0)
    eddy.add(dict(enumerate(queries)))
    eddy.bind(POSITIONS, {})
    return eddy
