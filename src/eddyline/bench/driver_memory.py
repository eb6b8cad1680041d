"""What the driver of an engine keeps of a query, in bytes, without Spark.

Counted is everything between adding queries and the end of the planning of a micro-batch: the
catalogue with names and numbers, the compiled queries and their templates, the sequence of queries
that run, their mapping by number, their bits, and the queries as they are shipped to workers. Of
Spark's objects an engine keeps none for a query that only compares columns with constants. Counts
of matches are kept only of queries that have matched, and are not in it.
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


def driver_bytes(count: int) -> float:
    """Return the bytes that the driver keeps for a query, without the characters of its text.

    For queries with two comparisons whose texts differ in their constants.

    Parameters
    ----------
    count
        Number of queries, added together.

    """
    from eddyline.spark.engine.catalogue import Catalogue
    from eddyline.spark.engine.compiled_query import CompiledQuery
    from eddyline.spark.engine.numbered import Numbered
    from eddyline.spark.engine.query_templates import QueryTemplates
    from eddyline.spark.engine.stream_history import StreamHistory

    schemas = Schemas({"s": dict.fromkeys(COLUMNS, "int")})
    rng = np.random.default_rng(0)
    texts = [
        f"SELECT a FROM s WHERE a > {low} AND b < {high}"
        for low, high in rng.integers(0, 10**6, (count, 2)).tolist()
    ]
    with tempfile.TemporaryDirectory(prefix="eddyline-memory-") as folder:
        catalogue = Catalogue(pathlib.Path(folder))
        templates = QueryTemplates(schemas, lambda text: parse(text, schemas))
        for text in texts[:2]:
            templates.learn(parse(text, schemas))
        gc.collect()
        tracemalloc.start()
        given = [(f"q{number}", text, "count") for number, text in enumerate(texts)]
        entries = catalogue.add_queries(given)
        compiled: Numbered[CompiledQuery] = Numbered()
        for entry in entries:
            template = templates.find(entry.text)
            assert template is not None
            compiled[entry.number] = CompiledQuery.of(entry, template)
        running = tuple(map(compiled.__getitem__, compiled))
        history: StreamHistory[Any] = StreamHistory(shared=CompiledQuery.shared)
        shipped = history.advance(1, Numbered((own.number, own) for own in running))
        del given, entries, entry
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(running) == len(history.slots) == count
        assert shipped.base
    return kept / count
