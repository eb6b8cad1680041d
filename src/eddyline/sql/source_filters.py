"""Which parts of a condition a source can evaluate itself, judged by their syntax."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from eddyline.sql.failures import column_parts, constant

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
_NULL_TESTS = ("isnull", "isnotnull")
_TEXT_TESTS = ("startswith", "endswith", "contains")


def conjuncts(tree: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the parts of a condition that must all hold."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        yield from conjuncts(tree.left)
        yield from conjuncts(tree.right)
    else:
        yield tree


def suits_source(tree: exp.Expression) -> bool:
    """Whether a condition only compares columns with constants, as sources can.

    Examples
    --------
    >>> from eddyline.sql.failures import parse_condition
    >>> def suits(condition: str) -> bool:
    ...     return suits_source(parse_condition(condition, False))
    >>> suits("day = 7 and (name like 'ab%' or name is null)"), suits("a in (1, 2)")
    (True, True)
    >>> suits("a = b"), suits("length(name) > 3"), suits("name like '%a_b'")
    (False, False, False)

    """
    tree = tree.unnest()
    if isinstance(tree, exp.And | exp.Or):
        return suits_source(tree.left) and suits_source(tree.right)
    if isinstance(tree, exp.Not):
        return suits_source(tree.this)
    if isinstance(tree, _COMPARISONS):
        one, other = tree.this, tree.expression
        return (_is_column(one) and _is_constant(other)) or (
            _is_constant(one) and _is_column(other)
        )
    if isinstance(tree, exp.Between):
        bounds = (tree.args["low"], tree.args["high"])
        return _is_column(tree.this) and all(map(_is_constant, bounds))
    if isinstance(tree, exp.In):
        values = tree.expressions
        return bool(values) and _is_column(tree.this) and all(map(_is_constant, values))
    if isinstance(tree, exp.Is):
        return _is_column(tree.this) and isinstance(tree.expression, exp.Null)
    if isinstance(tree, exp.Like):
        return _is_column(tree.this) and _is_part_of_text(tree.expression)
    if isinstance(tree, exp.Anonymous) and isinstance(tree.this, str):
        name, given = tree.this.lower(), tree.expressions
        if name in _NULL_TESTS:
            return len(given) == 1 and _is_column(given[0])
        if name in _TEXT_TESTS:
            return len(given) == 2 and _is_column(given[0]) and _is_constant(given[1])
        return False
    return _is_column(tree)


def _is_column(node: exp.Expression) -> bool:
    node = node.unnest()
    if isinstance(node, exp.Cast) and constant(node) is None:  # Spark adds casts to wider types
        node = node.this.unnest()
    return column_parts(node) is not None


def _is_constant(node: exp.Expression) -> bool:
    return constant(node) is not None


def _is_part_of_text(node: exp.Expression) -> bool:
    """Whether a pattern is a text with at most a % before and one after it."""
    value = constant(node)
    if value is None or not value[1]:
        return False
    inner = value[0].removeprefix("%").removesuffix("%")
    return not any(special in inner for special in "%_\\")
