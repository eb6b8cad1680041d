"""Whether a native condition can fail on some row, decided on its syntax tree with types.

What is not known to be harmless counts as something that can fail (`docs/decisions/0024`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import sqlglot
from sqlglot import exp

from eddyline.sql.dialect import dialect
from eddyline.sql.safe_functions import SAFE_FUNCTIONS
from eddyline.sql.value_types import (
    FLOATS,
    INTEGERS,
    TIMES,
    cast_can_fail,
    common_type,
    constant_fits,
    decimal_result,
    is_atomic,
    is_exact,
    is_number,
    is_text,
    type_name,
)

#: Returns the type of a column, given the parts of its name; None if there is no such column.
ColumnTypes = Callable[[tuple[str, ...]], str | None]

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
_CALLS: dict[type, tuple[str, tuple[str, ...]]] = {
    exp.Like: ("like", ("this", "expression")),
    exp.ILike: ("ilike", ("this", "expression")),
    exp.RegexpLike: ("rlike", ("this", "expression")),
    exp.DPipe: ("concat", ("this", "expression")),
    exp.If: ("if", ("this", "true", "false")),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Trim: ("trim", ("this", "expression")),
    exp.Initcap: ("initcap", ("this",)),
    exp.StrPosition: ("position", ("substr", "this")),
}
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_SUMS = {exp.Add: "an addition", exp.Sub: "a subtraction", exp.Mul: "a multiplication"}
_QUOTIENTS = {exp.Div: "a division", exp.Mod: "a modulo", exp.IntDiv: "a division"}
LENGTH_DIGITS_MAX = 6
_GROUP_REFERENCE = re.compile(r"[$\\]")


class CanFailError(Exception):
    """An expression can fail on some row; says why."""


def failure_reason(tree: exp.Expression, column_types: ColumnTypes, ansi: bool) -> str | None:
    """Return why a condition could fail on some row; None if it cannot.

    Parameters
    ----------
    tree
        The condition.
    column_types
        Types of the columns.
    ansi
        Whether overflows, divisions by zero and impossible casts are errors.

    Examples
    --------
    >>> def reason(condition: str, ansi: bool = True) -> str | None:
    ...     types = {("a",): "int", ("s",): "string"}
    ...     return failure_reason(parse_condition(condition, False), types.get, ansi)
    >>> reason("length(s) > 1 and cast(a as string) < 'x-y'")
    >>> reason("a / a > 1"), reason("a / 2 > 1"), reason("a + 1 > 1", ansi=False)
    ('a division can be by zero or overflow', None, None)
    >>> reason("s > 5")
    'Spark converts string to int, which can fail'

    """
    try:
        kind = _Examiner(column_types, ansi).examine(tree)
    except CanFailError as why:
        return str(why)
    return None if kind in ("boolean", "void") else f"its type is {kind}"


def parse_condition(text: str, double_quoted_identifiers: bool) -> exp.Expression:
    """Return the syntax tree of a condition in Spark SQL; raises `sqlglot.ParseError`."""
    tree: exp.Expression = sqlglot.parse_one(text, dialect=dialect(double_quoted_identifiers))
    return tree


def column_parts(node: exp.Expression) -> tuple[str, ...] | None:
    """Return the parts of a column's name, its source and struct columns included."""
    if isinstance(node, exp.Column):
        return tuple(part.name for part in node.parts)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        parts = column_parts(node.this)
        return None if parts is None else (*parts, node.expression.name)
    return None


def constant(node: exp.Expression) -> tuple[str, bool] | None:
    """Return the text of a constant, and whether it is a string; None for anything else."""
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return str(node.this), bool(node.is_string)
    if isinstance(node, exp.RawString):
        return str(node.this), True
    if isinstance(node, exp.Boolean):
        return str(node.this).lower(), True
    if isinstance(node, exp.Neg):
        value = constant(node.this)
        return None if value is None or value[1] else (f"-{value[0]}", False)
    if isinstance(node, exp.Cast):
        return constant(node.this)
    return None


class _Examiner:
    """Finds the type of each part of a condition, or why it could fail."""

    def __init__(self, column_types: ColumnTypes, ansi: bool) -> None:
        self._column_types = column_types
        self._ansi = ansi

    def examine(self, node: exp.Expression) -> str:
        """Return the type of an expression; raises if it could fail."""
        node = node.unnest()
        parts = column_parts(node)
        if parts is not None:
            kind = self._column_types(parts)
            if kind is None:
                raise CanFailError(f"the type of {'.'.join(parts)} is not known")
            return kind
        for classes, rule in _RULES:
            if isinstance(node, classes):
                return rule(self, node)
        raise CanFailError(f"{type(node).__name__} is not known to be harmless")

    # --- rules, one for each kind of expression ----------------------------------------------

    def _logic(self, node: exp.Expression) -> str:
        for part in node.iter_expressions():
            self._require_boolean(part)
        return "boolean"

    def _is(self, node: exp.Expression) -> str:
        self.examine(node.this)
        if not isinstance(node.expression, exp.Null):
            self._require_boolean(node.this)
        return "boolean"

    def _compare(self, node: exp.Expression) -> str:
        self._unify([node.this, node.expression])
        return "boolean"

    def _between(self, node: exp.Expression) -> str:
        self._unify([node.this, node.args["low"], node.args["high"]])
        return "boolean"

    def _in(self, node: exp.Expression) -> str:
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            raise CanFailError("it has a subquery")
        self._unify([node.this, *node.expressions])
        return "boolean"

    def _sum(self, node: exp.Expression) -> str:
        kind = self._unify([node.this, node.expression])
        if not is_number(kind):
            raise CanFailError(f"{_SUMS[type(node)]} of {kind} values could fail")
        if kind.startswith("decimal"):
            return self._decimal(node, _SUMS[type(node)])
        if self._ansi and kind not in FLOATS:
            raise CanFailError(f"{_SUMS[type(node)]} can overflow")
        return kind

    def _decimal(self, node: exp.Expression, what: str) -> str:
        """Return the type of decimal arithmetic, which is wide enough unless Spark must cut it."""
        kinds = [self.examine(node.this), self.examine(node.expression)]
        result = decimal_result(type(node), *kinds) if all(map(is_exact, kinds)) else None
        if result is None:
            raise CanFailError(f"{what} of decimals can overflow")
        return result

    def _negate(self, node: exp.Expression) -> str:
        kind = self.examine(node.this)
        if kind in FLOATS or constant(node.this) or (kind in INTEGERS and not self._ansi):
            return kind
        raise CanFailError("a change of sign can overflow")

    def _bits(self, node: exp.Expression) -> str:
        kind = self._unify([node.this, node.expression])
        if kind not in INTEGERS:
            raise CanFailError(f"bits of {kind} values are not known to be harmless")
        return kind

    def _function(self, node: exp.Expression) -> str:
        if not isinstance(node.this, str):
            raise CanFailError(f"{node.this.name} is not known to be harmless")
        return self._call(node.this.lower(), node.expressions)

    def _known_call(self, node: exp.Expression) -> str:
        """Judge calls that the parser reads into classes of their own."""
        name, keys = _CALLS[type(node)]
        given = [node.args.get(key) for key in keys]
        return self._call(name, [part for part in given if part is not None])

    def _element(self, node: exp.Expression) -> str:
        kind = self.examine(node.this)
        for index in node.expressions:
            self._accepts("i", index)
        if self._ansi or not (kind.startswith("array<") and kind.endswith(">")):
            raise CanFailError("an element may be missing")
        return kind.removeprefix("array<")[:-1]

    def _require_boolean(self, node: exp.Expression) -> None:
        kind = self.examine(node)
        if kind not in ("boolean", "void"):
            raise CanFailError(f"Spark converts {kind} to boolean, which can fail")

    def _unify(self, nodes: Sequence[exp.Expression]) -> str:
        """Return the type to which Spark converts all values, if that cannot fail."""
        kinds = [self.examine(node) for node in nodes]
        others = [
            kind
            for kind, node in zip(kinds, nodes, strict=True)
            if not (is_text(kind) and constant(node))
        ]
        target = common_type(others or ["string"])
        if target is None:
            if not self._ansi and all(map(is_atomic, kinds)):
                return "double" if any(map(is_number, kinds)) else "string"
            names = " and ".join(dict.fromkeys(kinds))
            text = [kind for kind in kinds if is_text(kind)]
            if text and len(set(kinds)) == 2:
                other = next(kind for kind in kinds if not is_text(kind))
                raise CanFailError(f"Spark converts {text[0]} to {other}, which can fail")
            raise CanFailError(f"Spark converts {names} to one type, which can fail")
        for kind, node in zip(kinds, nodes, strict=True):
            value = constant(node)
            is_converted = self._ansi and is_text(kind) and not is_text(target)
            if is_converted and value and not constant_fits(value[0], True, target):
                raise CanFailError(f"{value[0]!r} may be no {target}")
        return target

    def _cast(self, node: exp.Expression) -> str:
        source = self.examine(node.this)
        target = type_name(node.args["to"])
        if target is None:
            raise CanFailError(f"a cast to {node.args['to'].sql()} is not known to be harmless")
        value = constant(node.this)
        if node.args.get("safe") or (not self._ansi and is_atomic(source)):
            return target
        if value is not None and constant_fits(*value, target):
            return target
        if cast_can_fail(source, target):
            raise CanFailError(f"a cast from {source} to {target} can fail")
        return target

    def _case(self, node: exp.Expression) -> str:
        branches = node.args["ifs"]
        if node.this is not None:
            self._unify([node.this, *[branch.this for branch in branches]])
        else:
            for branch in branches:
                self._require_boolean(branch.this)
        results = [branch.args["true"] for branch in branches]
        if node.args.get("default") is not None:
            results.append(node.args["default"])
        return self._unify(results)

    def _divide(self, node: exp.Expression) -> str:
        kind = self._unify([node.this, node.expression])
        divisor = constant(node.expression)
        is_harmless = kind in FLOATS or kind in INTEGERS
        if self._ansi or not is_number(kind):
            is_harmless = is_harmless and divisor is not None and float(divisor[0]) > 0
        is_positive = divisor is not None and not divisor[1] and float(divisor[0]) > 0
        if kind.startswith("decimal") and isinstance(node, exp.Div) and is_positive:
            return self._decimal(node, "a division")
        if not is_harmless:
            raise CanFailError(f"{_QUOTIENTS[type(node)]} can be by zero or overflow")
        if isinstance(node, exp.IntDiv):
            return "bigint"
        return "double" if isinstance(node, exp.Div) else kind

    def _call(self, name: str, given: Sequence[exp.Expression]) -> str:
        if name not in SAFE_FUNCTIONS:
            raise CanFailError(f"{name} is not known to be harmless")
        signatures, result = SAFE_FUNCTIONS[name]
        letters = next((s for s in (_spread(s, len(given)) for s in signatures) if s), None)
        if letters is None and not (signatures == ("-",) and not given):
            raise CanFailError(f"{name} with {len(given)} arguments is not known to be harmless")
        alike = []
        for letter, node in zip(letters or "", given, strict=True):
            if letter == "=":
                alike.append(node)
            elif not self._accepts(letter, node):
                raise CanFailError(f"an argument of {name} could fail: {node.sql()}")
        _check_groups(name, given)
        if result == "=" or alike:
            kind = self._unify(alike or given)
            return kind if result == "=" else result
        return result

    def _accepts(self, letter: str, node: exp.Expression) -> bool:
        kind = self.examine(node)
        if kind == "void" or letter == "a":
            return True
        return {
            "s": is_atomic(kind),
            "c": is_text(kind) and constant(node) is not None,
            "y": is_atomic(kind),
            "k": kind in INTEGERS and _is_moderate(constant(node)),
            "i": kind in ("tinyint", "smallint", "int"),
            "n": kind in INTEGERS or kind in FLOATS,
            "f": kind in FLOATS,
            "t": kind in TIMES,
            "b": kind == "boolean",
            "l": is_atomic(kind) or kind == "array<string>",
        }[letter]


_RULES: tuple[tuple[tuple[type, ...], Callable[[_Examiner, exp.Expression], str]], ...] = (
    ((exp.Literal,), lambda _, node: _type_of_literal(node)),
    ((exp.RawString,), lambda *_: "string"),
    ((exp.Boolean,), lambda *_: "boolean"),
    ((exp.Null,), lambda *_: "void"),
    ((exp.And, exp.Or, exp.Not), _Examiner._logic),
    ((exp.Is,), _Examiner._is),
    (_COMPARISONS, _Examiner._compare),
    ((exp.Between,), _Examiner._between),
    ((exp.In,), _Examiner._in),
    ((exp.Escape,), lambda examiner, node: examiner.examine(node.this)),
    ((exp.Cast,), _Examiner._cast),
    ((exp.Case,), _Examiner._case),
    (tuple(_SUMS), _Examiner._sum),
    (tuple(_QUOTIENTS), _Examiner._divide),
    ((exp.Neg,), _Examiner._negate),
    (_BITS, _Examiner._bits),
    ((exp.Bracket,), _Examiner._element),
    ((exp.Anonymous,), _Examiner._function),
    (tuple(_CALLS), _Examiner._known_call),
)


def _is_moderate(value: tuple[str, bool] | None) -> bool:
    return value is not None and len(value[0]) <= LENGTH_DIGITS_MAX


def _spread(signature: str, arguments: int) -> str | None:
    """Return one letter for each argument; None if the signature takes another number of them."""
    if signature.endswith("*"):
        signature = signature[:-1]
        signature += signature[-1] * (arguments - len(signature))
    return signature if len(signature) == arguments and arguments else None


def _check_groups(name: str, arguments: Sequence[exp.Expression]) -> None:
    """Raise if a regular expression may be asked for a group that it does not have."""
    if name == "regexp_replace" and _GROUP_REFERENCE.search((constant(arguments[2]) or ("$",))[0]):
        raise CanFailError("its replacement may name a group that the pattern lacks")
    if name != "regexp_extract":
        return
    pattern = constant(arguments[1])
    group = constant(arguments[2]) if len(arguments) > 2 else ("1", False)
    try:
        groups = re.compile(pattern[0]).groups if pattern else 0
    except re.error:
        groups = 0
    if group is None or not group[0].isdigit() or int(group[0]) > groups:
        raise CanFailError("its pattern may lack the group that is asked for")


def _type_of_literal(node: exp.Literal) -> str:
    if node.is_string:
        return "string"
    text = str(node.this)
    if text.isdigit():
        value = int(text)
        return "int" if value < 2**31 else "bigint" if value < 2**63 else "decimal(38,0)"
    whole, _, fraction = text.partition(".")
    if not (whole + fraction).isdigit():
        return "double"  # with an exponent
    before = len(whole.lstrip("0"))
    return f"decimal({max(before + len(fraction), 1)},{len(fraction)})"
