"""Eddyline: adaptive query processing on PySpark.

Spark gives every row the same plan. Eddyline gives each kind of row its own and learns which while
the query runs.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from eddyline.content import ContentOptions
from eddyline.errors import (
    EddylineError,
    EngineError,
    InvalidPolicyError,
    InvalidPredicateError,
    LookupTableError,
    MissingSparkError,
    PredicateFailedError,
    QueryError,
    error_of,
)
from eddyline.journal import Event, Journal, Record
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

if TYPE_CHECKING:
    from eddyline.report.model import Report
    from eddyline.spark.common.predicates import expr, lookup, shared, udf
    from eddyline.spark.engine.engine import Engine
    from eddyline.spark.engine.run import Run
    from eddyline.spark.engine.sinks import callback
    from eddyline.spark.where.where import Where, where

__version__ = "0.1.0"

__all__ = [
    "AGreedy",
    "AsWritten",
    "Change",
    "ContentOptions",
    "EddylineError",
    "Engine",
    "EngineError",
    "Event",
    "Evidence",
    "Independent",
    "InvalidPolicyError",
    "InvalidPredicateError",
    "Journal",
    "LocalSwaps",
    "LookupTableError",
    "Lottery",
    "MeshOptions",
    "MissingSparkError",
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
    "error_of",
    "expr",
    "lookup",
    "shared",
    "udf",
    "where",
]

#: Names that only the driver uses, and the modules that define them.
_HOME_OF = {
    "Engine": "eddyline.spark.engine.engine",
    "Report": "eddyline.report.model",
    "Run": "eddyline.spark.engine.run",
    "Where": "eddyline.spark.where.where",
    "callback": "eddyline.spark.engine.sinks",
    "expr": "eddyline.spark.common.predicates",
    "lookup": "eddyline.spark.common.predicates",
    "shared": "eddyline.spark.common.predicates",
    "udf": "eddyline.spark.common.predicates",
    "where": "eddyline.spark.where.where",
}


if not TYPE_CHECKING:  # a type checker should go by the imports above

    def __getattr__(name: str) -> Any:
        """Import a driver-side name when it is first used.

        Every new Python worker imports this package before its first row, and needs neither the
        SQL parser nor the reports (docs/decisions/0014).
        """
        if name not in _HOME_OF:
            raise AttributeError(f"module 'eddyline' has no attribute {name!r}")
        home = _HOME_OF[name]
        if home.startswith("eddyline.spark.") and find_spec("pyspark") is None:
            raise MissingSparkError
        value = globals()[name] = getattr(import_module(home), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
