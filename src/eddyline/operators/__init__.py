"""Operators that drop rows: Python predicates and lookups. They do not know who orders them."""

from eddyline.operators.batch import Batch, ColumnReader
from eddyline.operators.iterator import PerBatch
from eddyline.operators.lookup import Lookup, LookupTable
from eddyline.operators.operator import Operator, Outcome
from eddyline.operators.predicate import ArrowPredicate, PandasPredicate, RowPredicate
from eddyline.operators.shared_value import SharedValue

__all__ = [
    "ArrowPredicate",
    "Batch",
    "ColumnReader",
    "Lookup",
    "LookupTable",
    "Operator",
    "Outcome",
    "PandasPredicate",
    "PerBatch",
    "RowPredicate",
    "SharedValue",
]
