"""Value sets that are not computed yet: of which constants they are made, and how.

If a query is parsed with `FormulaColumns`, the values that its comparisons accept are formulas.
Those of a query that differs in constants follow from the formulas, without parsing it. So that
nothing else differs, `Decisions` has what was decided by looking at values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

from eddyline.operators.domain import Text, Whole
from eddyline.operators.value_set import ValueSet
from eddyline.sql.comparison import ColumnTypes
from eddyline.sql.value_types import INTEGERS

#: The constants of a query, each as the texts of its literals: several for a list.
Constants = Sequence[Sequence[str]]
_STRINGS, _NUMBERS = Text(), Whole()


class UnfitConstantsError(Exception):
    """A query with these constants is not like the one that was parsed."""


@dataclass(frozen=True, slots=True)
class Formula(ValueSet):
    """A value set that depends on constants. Equal formulas give equal sets for all constants."""

    def values(self, constants: Constants) -> ValueSet:
        """Return the set for some constants; raise if there is none."""
        raise NotImplementedError

    def __and__(self, other: ValueSet) -> ValueSet:
        return _Combined(sign="&", parts=(self, other))

    def __rand__(self, other: ValueSet) -> ValueSet:
        return _Combined(sign="&", parts=(other, self))

    def __or__(self, other: ValueSet) -> ValueSet:
        return _Combined(sign="|", parts=(self, other))

    def __ror__(self, other: ValueSet) -> ValueSet:
        return _Combined(sign="|", parts=(other, self))

    def __invert__(self) -> ValueSet:
        return _Combined(sign="~", parts=(self,))


def values_of(values: ValueSet, constants: Constants) -> ValueSet:
    """Return a value set, or that of a formula for some constants."""
    return values.values(constants) if isinstance(values, Formula) else values


@dataclass(frozen=True, slots=True)
class _Combined(Formula):
    """What AND, OR and NOT make of value sets."""

    sign: str = ""
    parts: tuple[ValueSet, ...] = ()

    def values(self, constants: Constants) -> ValueSet:
        first, *others = [values_of(part, constants) for part in self.parts]
        if self.sign == "~":
            return ~first
        return first & others[0] if self.sign == "&" else first | others[0]


class _Operand(NamedTuple):
    """A constant as it is written: the place of its literals, if they have one, and around them."""

    node: exp.Expression
    place: int | None

    def nodes(self, constants: Constants) -> list[exp.Expression]:
        """Return it with other literals."""
        if self.place is None:
            return [self.node]
        return [_with_literal(self.node, text) for text in constants[self.place]]


@dataclass(frozen=True, slots=True)
class _Compared(Formula):
    """The values of a column that a comparison accepts; the sign is `in` for a list."""

    columns: ColumnTypes = field(default_factory=lambda: ColumnTypes({}), compare=False)
    column: str = ""
    sign: str = ""
    operands: tuple[_Operand, ...] = ()

    def values(self, constants: Constants) -> ValueSet:
        found = self.find(constants)
        if found is None:
            raise UnfitConstantsError
        return found

    def find(self, constants: Constants) -> ValueSet | None:
        """Return the values; None if only Spark can tell."""
        if self.sign == "in":
            nodes = [node for operand in self.operands for node in operand.nodes(constants)]
            return self.columns.equal_to_any(self.column, nodes)
        (operand,) = self.operands
        if operand.place is not None and type(operand.node) is exp.Literal:
            (text,) = constants[operand.place]
            data_type = self.columns.types[self.column]
            if operand.node.is_string and data_type == "string":  # what `compare` does, only faster
                return _STRINGS.compare(self.sign, text)
            if text.isdecimal() and not operand.node.is_string and data_type in INTEGERS:
                return _NUMBERS.compare(self.sign, int(text))
        (node,) = operand.nodes(constants)
        return self.columns.compare(self.column, self.sign, node)


@dataclass
class Decisions:
    """What was decided by looking at values while a query was parsed.

    Parameters
    ----------
    left_to_spark
        Comparisons with constants that have no value set.
    different
        Pairs of conjunctions that do not accept the same values.

    """

    left_to_spark: list[_Compared] = field(default_factory=list)
    different: list[tuple[Mapping[str, ValueSet], Mapping[str, ValueSet]]] = field(
        default_factory=list
    )

    def check(self, constants: Constants) -> None:
        """Raise unless all decisions are the same for some constants."""
        if any(compared.find(constants) is not None for compared in self.left_to_spark):
            raise UnfitConstantsError
        for pair in self.different:
            one, other = (
                {name: values_of(values, constants) for name, values in term.items()}
                for term in pair
            )
            if one == other:
                raise UnfitConstantsError


@dataclass(frozen=True)
class FormulaColumns(ColumnTypes):
    """Column types that give formulas.

    Parameters
    ----------
    places
        Literals that stand for the constants, with the place of each among them.
    decisions
        Where decisions are noted.

    """

    places: Mapping[str, int] = field(default_factory=dict)
    decisions: Decisions = field(default_factory=Decisions)

    def compare(self, column: str, sign: str, other: exp.Expression) -> ValueSet | None:
        """Return the formula of a comparison."""
        return self._formula(super().compare(column, sign, other), column, sign, [other])

    def equal_to_any(self, column: str, items: Sequence[exp.Expression]) -> ValueSet | None:
        """Return the formula of a list."""
        return self._formula(super().equal_to_any(column, items), column, "in", items)

    def are_same(self, term: Mapping[str, ValueSet], other: Mapping[str, ValueSet]) -> bool:
        """Whether two conjunctions are the same for all constants."""
        if term == other:
            return True
        self.decisions.different.append((dict(term), dict(other)))
        return False

    def _formula(
        self, values: ValueSet | None, column: str, sign: str, nodes: Sequence[exp.Expression]
    ) -> ValueSet | None:
        operands: dict[object, _Operand] = {}
        for number, node in enumerate(nodes):
            place = self._place(node)
            key = (place,) if place is not None else number  # a list has several literals
            operands.setdefault(key, _Operand(node, place))
        if column not in self.types or all(each.place is None for each in operands.values()):
            return values
        plain = ColumnTypes(self.types, self.timezone, self.ansi)
        formula = _Compared(
            columns=plain, column=column, sign=sign, operands=tuple(operands.values())
        )
        if values is not None:
            return formula
        self.decisions.left_to_spark.append(formula)
        return None

    def _place(self, node: exp.Expression) -> int | None:
        """Return the place of a constant; None if it is one by itself, or none."""
        while isinstance(node, exp.Neg | exp.Cast):
            node = node.this
        return self.places.get(node.name) if isinstance(node, exp.Literal) else None


def _with_literal(node: exp.Expression, text: str) -> exp.Expression:
    """Return a constant with another literal; a minus in front of a number is part of it."""
    if isinstance(node, exp.Literal):
        if node.is_string or not text.startswith("-"):
            return exp.Literal(this=text, is_string=node.is_string)
        return exp.Neg(this=exp.Literal(this=text[1:], is_string=False))
    if isinstance(node, exp.Neg):
        return exp.Neg(this=_with_literal(node.this, text))
    changed = node.copy()  # a cast
    changed.set("this", _with_literal(node.this, text))
    return changed
