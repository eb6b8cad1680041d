"""What the driver of an engine keeps of a query, in bytes, without Spark.

Counted is everything between adding queries and the end of the planning of a micro-batch: the
catalogue with names and numbers, the compiled queries and their templates, the sequence of queries
that run, their mapping by number, their bits, and the queries as they are shipped to workers. Of
Spark's objects an engine keeps none for a query that only compares columns with constants, or calls
Python functions. Native conditions are part of the plan that Spark runs, once each, with their
texts; these are not counted. Counts of matches are kept only of queries that have matched, and are
not in it, either.
"""

from __future__ import annotations

import gc
import pathlib
import tempfile
import tracemalloc
from typing import Any

import numpy as np

from eddyline.bench.cacq_workload import COLUMNS
from eddyline.sql.parse import parse
from eddyline.sql.schemas import Schemas

#: Queries that are measured of each kind.
COUNT = 20_000
#: Conditions of the kinds that are measured; {0} and {1} are constants.
KINDS = {
    "two comparisons": "a > {0} AND b < {1}",
    "BETWEEN": "a BETWEEN {0} AND {1} AND b NOT BETWEEN {1} AND {0}",
    "IN": "a IN ({0}, {1}, 7) AND b < {1}",
    "OR": "a > {0} OR b < {1}",
    "NOT over OR": "NOT (a > {0} OR (b < {1} AND c > 3))",
    "nested AND and OR": "a = {0} AND (b < {1} OR (c > {0} AND (d = {1} OR e <> 3)))",
    "LIKE": "t LIKE '%{0}%' AND b < {1}",
    "a native function": "length(t) > {0} AND b < {1}",
    "arithmetic": "a + b > {0} OR c % 7 = {1}",
    "a Python function": "f(t) AND a > {0} AND b < {1}",
    "the answer of a Python function": "f(t) > {0} OR a < {1}",
}


def driver_bytes(count: int, kind: str = "two comparisons") -> float:
    """Return the bytes that the driver keeps for a query, without the characters of its text.

    For queries whose texts differ in their constants.

    Parameters
    ----------
    count
        Number of queries, added together.
    kind
        Of `KINDS`.

    """
    from eddyline.spark.engine.catalogue import Catalogue
    from eddyline.spark.engine.compiled_query import CompiledQuery
    from eddyline.spark.engine.numbered import Numbered
    from eddyline.spark.engine.query_templates import QueryTemplates
    from eddyline.spark.engine.stream_history import StreamHistory

    def compile_query(text: str, schemas: Schemas) -> CompiledQuery:
        return CompiledQuery(0, "", parse(text, schemas), "count")

    schemas = Schemas({"s": dict.fromkeys(COLUMNS, "int") | {"t": "string"}}, functions={"f": "f"})
    rng = np.random.default_rng(0)
    texts = [
        f"SELECT a FROM s WHERE {KINDS[kind].format(low, high)}"
        for low, high in rng.integers(0, 10**6, (count, 2)).tolist()
    ]
    with tempfile.TemporaryDirectory(prefix="eddyline-memory-") as folder:
        catalogue = Catalogue(pathlib.Path(folder))
        templates = QueryTemplates(schemas, compile_query)
        for text in texts[:2]:
            templates.learn(compile_query(text, schemas))
        gc.collect()
        tracemalloc.start()
        given = [(f"q{number}", text, "count") for number, text in enumerate(texts)]
        entries = catalogue.add_queries(given)
        compiled: Numbered[CompiledQuery] = Numbered()
        for entry in entries:
            template = templates.find(entry.text)
            if template is not None:
                compiled[entry.number] = CompiledQuery.of(entry, template)
                continue
            own = CompiledQuery(entry.number, entry.name, parse(entry.text, schemas), entry.sink)
            own.enter(entry)
            compiled[entry.number] = own
        running = tuple(map(compiled.__getitem__, compiled))
        history: StreamHistory[Any] = StreamHistory(shared=CompiledQuery.shared)
        shipped = history.advance(1, Numbered((own.number, own) for own in running))
        template = own = None  # type: ignore[assignment]
        del given, entries, entry
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(running) == len(history.slots) == count
        assert shipped.base
    return kept / count
