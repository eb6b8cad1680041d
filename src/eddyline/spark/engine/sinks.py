"""Sinks: where the results of a query go."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eddyline.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CALLBACK_ROWS_MAX = 10_000
#: Kinds of sinks that are functions, which cannot be kept on disk.
FUNCTION_KINDS = ("function", "callback", "console")


@dataclass(frozen=True)
class Callback:
    """A function that is called with the new results, as a list of rows; made by `el.callback`.

    Parameters
    ----------
    function, rows_max
        As `callback` takes them.
    kind
        How the catalogue lists it: "console" if the rows are printed by the command line.

    """

    function: Callable[[list[Any]], object]
    rows_max: int = CALLBACK_ROWS_MAX
    kind: str = "callback"

    def __call__(self, results: DataFrame, batch_id: int) -> None:
        """Collect the results and hand them over."""
        rows = results.limit(self.rows_max + 1).collect()
        if len(rows) > self.rows_max:
            raise EngineError(
                f"more than {self.rows_max:,} results in one micro-batch, too many for a callback; "
                f"raise rows_max, or let the query write to a table"
            )
        if rows:
            self.function(rows)


def callback(
    function: Callable[[list[Any]], object], rows_max: int = CALLBACK_ROWS_MAX
) -> Callback:
    """Return a sink that calls a function with each micro-batch's results, as a list of rows.

    Parameters
    ----------
    function
        Called on the driver with one `Row` for each result; not called without results.
    rows_max
        Largest number of results in one micro-batch, which are collected; a query with more is
        paused.

    Examples
    --------
    >>> alerts = callback(lambda rows: print(len(rows), "alerts"))
    >>> alerts.rows_max
    10000

    """
    if not callable(function):
        raise EngineError(f"callback takes a function, not {type(function).__name__}")
    return Callback(function, rows_max)


def is_same_kind(stored: str, given: str) -> bool:
    """Whether a sink is of the kind that the catalogue has.

    Earlier versions listed what the command line prints as "callback".
    """
    return stored == given or (stored, given) == ("callback", "console")


def kind_of(sink: object, name: str) -> str:
    """Return the kind of a sink as in the catalogue; raise if it cannot be one."""
    if sink is None:
        return "parquet"
    if sink == "count":
        return "count"
    if isinstance(sink, Callback):
        return sink.kind
    if callable(sink):
        try:
            inspect.signature(sink).bind("results", 0)
        except TypeError as error:
            raise EngineError(
                f"the sink of query {name!r} must take (DataFrame, batch id): {error}; for a "
                f"function of rows, use el.callback(function)"
            ) from None
        except ValueError:  # a built-in without a signature
            pass
        return "function"
    raise EngineError(
        f'the sink of query {name!r} is {sink!r}; it must be None (Parquet), "count", a function '
        f"of (DataFrame, batch id), or el.callback(function)"
    )
