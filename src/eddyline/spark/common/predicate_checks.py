"""What is asked of Python functions and keys before they become predicates."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from eddyline.errors import InvalidPredicateError, LookupTableError

#: How a Python function is called: with one row, or with whole columns as pandas or Arrow.
FunctionKind = Literal["row", "pandas", "arrow", "pandas_iterator", "arrow_iterator"]

# The values of pyspark.util.PythonEvalType, which a `udf` carries with it.
_KINDS: dict[int, tuple[FunctionKind, Literal["null", "cast"]]] = {
    100: ("row", "null"),
    101: ("row", "cast"),
    200: ("pandas", "cast"),
    204: ("pandas_iterator", "cast"),
    250: ("arrow", "cast"),
    251: ("arrow_iterator", "cast"),
}


def function_name(function: object) -> str:
    """Return the name of a function, also of one that PySpark or functools has wrapped."""
    inner = getattr(function, "func", function)  # PySpark udf, functools.partial
    return getattr(inner, "__name__", type(inner).__name__)


def kind_of_udf(function: Any, label: str) -> tuple[FunctionKind, Literal["null", "cast"]]:
    """Return how a PySpark `udf` is called, and what becomes of answers of another type."""
    if function.evalType not in _KINDS:
        raise InvalidPredicateError(
            f"predicate {label!r} is a grouped, aggregating or table function; a predicate must "
            f"be a scalar udf, pandas_udf or arrow_udf (plain or iterator)"
        )
    return _KINDS[function.evalType]


def check_returns_boolean(function: Any, label: str) -> None:
    """Raise if a PySpark function is declared to return anything but a boolean."""
    returns = function.returnType
    text = returns if isinstance(returns, str) else returns.simpleString()
    if text.strip().lower() not in ("boolean", "bool"):
        raise InvalidPredicateError(
            f"predicate {label!r} is declared to return {text}; a predicate must return boolean: "
            f'declare it with returnType="boolean"'
        )


def check_arity(
    function: Callable[..., Any], kind: FunctionKind, columns: tuple[Any, ...], label: str
) -> None:
    """Raise if a function cannot be called with so many columns."""
    if kind.endswith("_iterator"):
        if not columns:
            raise InvalidPredicateError(
                f"predicate {label!r} is an iterator function; name at least one column"
            )
        return  # takes one iterator, whatever the number of columns
    if kind != "row" and not columns:
        raise InvalidPredicateError(
            f"predicate {label!r} is called with whole columns; name at least one column"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions do not tell
        return
    try:
        signature.bind(*columns)
    except TypeError as error:
        raise InvalidPredicateError(
            f"predicate {label!r} cannot be called with {len(columns)} column(s) "
            f"({', '.join(map(str, columns)) or 'none'}): {error}"
        ) from None


def check_name(name: object, of: str) -> None:
    """Raise if a name is not a text."""
    if name is not None and not isinstance(name, str):
        raise InvalidPredicateError(f"{of}(name={name!r}): a name must be text, not {_type(name)}")


def check_flag(value: object, option: str) -> None:
    """Raise if an option is neither True, False nor None."""
    if not isinstance(value, bool | None):
        raise InvalidPredicateError(f"{option}={value!r}: it must be True, False or None")


def _type(value: object) -> str:
    return type(value).__name__


def key_pairs(on: object) -> dict[str, str]:
    """Return the key columns of a lookup: those of the DataFrame to those of the table."""
    if isinstance(on, str):
        return {on: on}
    if isinstance(on, Mapping):
        pairs = dict(on)
    elif isinstance(on, Sequence):
        pairs = {key: key for key in on}
    else:
        pairs = {}
    if not pairs or not all(isinstance(k, str) and isinstance(v, str) for k, v in pairs.items()):
        raise LookupTableError(
            f"el.lookup(on={on!r}): name the key columns, as text, a list of texts, or a mapping "
            f"from the DataFrame's columns to the table's"
        )
    return pairs
