"""Eddyline: adaptive query processing on PySpark.

Spark gives every row the same plan. Eddyline gives each kind of row its own and learns which while
the query runs.
"""

from eddyline.content.learns import ContentOptions
from eddyline.errors import (
    EddylineError,
    EngineError,
    InvalidPolicyError,
    InvalidPredicateError,
    LookupTableError,
    PredicateFailedError,
    QueryError,
)
from eddyline.journal import Journal, Record
from eddyline.mesh import MeshOptions
from eddyline.ordering import (
    AGreedy,
    AsWritten,
    Change,
    Evidence,
    Independent,
    LocalSwaps,
    Lottery,
    Policy,
    Sweep,
)
from eddyline.report import Report
from eddyline.spark import Engine, Run, Where, callback, lookup, udf, where

__version__ = "0.1.0"

__all__ = [
    "AGreedy",
    "AsWritten",
    "Change",
    "ContentOptions",
    "EddylineError",
    "Engine",
    "EngineError",
    "Evidence",
    "Independent",
    "InvalidPolicyError",
    "InvalidPredicateError",
    "Journal",
    "LocalSwaps",
    "LookupTableError",
    "Lottery",
    "MeshOptions",
    "Policy",
    "PredicateFailedError",
    "QueryError",
    "Record",
    "Report",
    "Run",
    "Sweep",
    "Where",
    "__version__",
    "callback",
    "lookup",
    "udf",
    "where",
]
