"""In which order Spark evaluates the parts of a condition that calls Python functions.

Spark calls the functions first, on the rows that fulfil all conditions without such calls. Then it
evaluates AND and OR from left to right and leaves out what no longer matters. A native part that
could fail on a row is safe if it is evaluated on those rows only on which Spark evaluates it too.
"""

from __future__ import annotations

from sqlglot import exp

from eddyline.sql.normalise import negate
from eddyline.sql.resolve import ResolvedQuery
from eddyline.sql.tree import stream_sql


def has_mixed_alternatives(condition: exp.Expression, resolved: ResolvedQuery) -> bool:
    """Whether a condition that calls functions also has parts without such calls."""
    condition = condition.unnest()
    if isinstance(condition, exp.And | exp.Or):
        return any(
            not resolved.calls_function(part) or has_mixed_alternatives(part, resolved)
            for part in (condition.left, condition.right)
        )
    if isinstance(condition, exp.Not):
        return has_mixed_alternatives(condition.this, resolved)
    return False


def evaluation_guards(
    condition: exp.Expression, resolved: ResolvedQuery
) -> dict[str, tuple[str, ...]]:
    """Return what protects the native parts in front of the first function call of a condition.

    Parameters
    ----------
    condition
        A condition that calls a registered function.
    resolved
        The query.

    Returns
    -------
    For each such part, by its SQL text over `STREAM`, what must hold before Spark evaluates it.

    Examples
    --------
    >>> from eddyline.sql.parse import parse
    >>> from eddyline.sql.schemas import Schemas
    >>> schemas = Schemas({"s": {"a": "int"}}, functions={"f": "f__1"})
    >>> query = parse("SELECT a FROM s WHERE a = 0 OR (1 / a > 2 AND f(a)) OR 2 / a > 1", schemas)
    >>> for part, guards in query.ordered.guards.items():
    ...     print(part, list(guards))
    `__eddyline_stream`.`a` = 0 []
    1 / `__eddyline_stream`.`a` > 2 ['(`__eddyline_stream`.`a` = 0) IS NOT TRUE']

    """
    guards: dict[str, tuple[str, ...]] = {}
    _add_guards(condition, (), guards, resolved)
    return guards


def _add_guards(
    condition: exp.Expression,
    before: tuple[str, ...],
    guards: dict[str, tuple[str, ...]],
    resolved: ResolvedQuery,
) -> bool:
    """Add the parts of a condition to `guards`; return False once a function call was reached."""
    condition = condition.unnest()
    if not resolved.calls_function(condition):
        guards.setdefault(stream_sql(condition), before)
        return True
    if isinstance(condition, exp.Not):
        opposite = negate(condition.this)
        return opposite is not None and _add_guards(opposite, before, guards, resolved)
    if not isinstance(condition, exp.And | exp.Or):
        return False
    if not _add_guards(condition.left, before, guards, resolved):
        return False
    needed_if = "TRUE" if isinstance(condition, exp.Or) else "FALSE"
    left = f"({stream_sql(condition.left.unnest())}) IS NOT {needed_if}"
    return _add_guards(condition.right, (*before, left), guards, resolved)
