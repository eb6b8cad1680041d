"""Joins with static tables as lookups: keys are shipped to workers, so that fewer rows return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from eddyline.errors import LookupTableError
from eddyline.journal import Event
from eddyline.journal.events import LookupNotShipped
from eddyline.spark.common.lookup_keys import common_type, plan_lookup
from eddyline.spark.common.operator_plans import ArrowPlan, OperatorPlan
from eddyline.spark.common.predicates import LOOKUP_ROWS_MAX, LookupPredicate
from eddyline.spark.engine.result_store import ResultStore
from eddyline.spark.engine.stream_info import StreamInfo
from eddyline.sql.query import Query
from eddyline.sql.specs import LookupSpec


class TableLookups:
    """Makes lookups of static tables; the keys of each version of a table are collected once.

    A lookup only saves work: Spark joins the table with the matching rows in any case.

    Parameters
    ----------
    results
        Reads the tables.
    versions
        Returns the version of each table that is in use.
    note
        Writes a decision into the journal.

    """

    def __init__(
        self,
        results: ResultStore,
        versions: Callable[[], dict[str, int]],
        note: Callable[[Event], None],
    ) -> None:
        self._results = results
        self._versions = versions
        self._note = note
        self._shipped: dict[tuple[str, int, tuple[str, ...]], OperatorPlan] = {}

    def shippable(self, query: Query, stream: StreamInfo) -> list[LookupSpec]:
        """Return the lookups whose tables are small enough to be shipped."""
        shipped = []
        for spec in query.lookups:
            try:
                self._operator(spec, stream, self._versions()[spec.table])
                shipped.append(spec)
            except Exception as error:  # Spark joins the table in any case
                self._note(LookupNotShipped(table=spec.table, reason=str(error).split("\n")[0]))
        return shipped

    def _operator(self, spec: LookupSpec, stream: StreamInfo, version: int) -> OperatorPlan:
        """Return the plan of a lookup in a version of a table; keys are collected once."""
        types = {column.name: column.dataType for column in stream.schema}
        own = [types[name] for name in spec.columns]
        key = (spec.key, version, tuple(kind.simpleString() for kind in own))
        if key in self._shipped:
            return self._shipped[key]
        table = self._results.table(spec.table, version)
        if spec.condition:
            table = table.filter(spec.condition)
        for name, other, kind in zip(spec.columns, spec.keys, own, strict=True):
            if common_type(kind, table.schema[other].dataType, spec.key, name) != kind:
                raise LookupTableError(f"{spec.key}: {name} and {other} are of different types")
        predicate = LookupPredicate(
            table, spec.columns, spec.keys, False, spec.key, LOOKUP_ROWS_MAX
        )
        made = plan_lookup(predicate, own, tuple(range(len(own))))
        for known in [k for k in self._shipped if (k[0], k[2]) == (key[0], key[2])]:
            del self._shipped[known]
        self._shipped[key] = made
        return made

    def operator_or_all(self, spec: LookupSpec, stream: StreamInfo, version: int) -> OperatorPlan:
        """Return the plan of a lookup; one that passes all rows if the table became too large."""
        try:
            return self._operator(spec, stream, version)
        except Exception as error:
            self._note(LookupNotShipped(table=spec.table, reason=str(error).split("\n")[0]))
            return ArrowPlan(spec.key, (), _all_rows)


def _all_rows(*keys: Any) -> Any:
    return pa.repeat(True, len(keys[0]))
