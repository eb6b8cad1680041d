"""A compiled query in which constants can be replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from pyspark.sql.types import DataType

from eddyline.fabric.shared.query import SharedQuery
from eddyline.spark.engine.compiled_join import CompiledJoin
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.holes import Filler, Holes
from eddyline.spark.engine.query_shape import Constant, QueryShape
from eddyline.sql.formulas import Decisions, UnfitConstantsError
from eddyline.sql.query import Query
from eddyline.sql.specs import PredicateSpec

#: Whole numbers with more digits may have another type.
_DIGITS_MAX = 9
_NAMES = [field.name for field in fields(Query) if field.name != "text"]


@dataclass(frozen=True, eq=False)
class QueryTemplate:
    """A compiled query in which constants can be replaced.

    Parameters
    ----------
    outline
        A query of this shape; others differ from it in their constants.
    holes
        By field of the query, how it is made for other constants; fields without any are left out.
    decisions
        What must be decided in the same way for other constants.
    is_plain
        Whether it only compares columns with constants.
    types
        As `argument_types` of `CompiledQuery`, and how they are made for other constants.
    select_may_fail, select_calls_python
        As in `CompiledQuery`.

    """

    outline: Query
    holes: Mapping[str, Filler]
    decisions: Decisions
    is_plain: bool
    types: tuple[Mapping[str, DataType], Filler | None]
    select_may_fail: bool
    select_calls_python: bool
    join: ClassVar[CompiledJoin | None] = None

    @classmethod
    def of(
        cls, probe: CompiledQuery, outline: Query, holes: Holes, decisions: Decisions
    ) -> QueryTemplate:
        """Return what a query that was compiled from a probe has in common with an outline."""
        query = probe.query
        own = {name: holes.filler(getattr(query, name)) for name in _NAMES}
        return cls(
            outline,
            {name: filler for name, filler in own.items() if filler is not None},
            decisions,
            not query.predicates,
            (probe.argument_types, holes.filler(probe.argument_types)),
            probe.select_may_fail,
            probe.select_calls_python,
        )

    def query_of(self, text: str) -> Query:
        """Return the query that has a text of this shape."""
        made = self._made(text, self.holes)
        return replace(self.outline, text=text, **made)

    def predicates_of(self, text: str) -> Sequence[PredicateSpec]:
        """Return the shared predicates of the query that has a text of this shape."""
        if "predicates" not in self.holes:
            return self.outline.predicates
        made: Sequence[PredicateSpec] = self._made(text, ("predicates",))["predicates"]
        return made

    def argument_types_of(self, text: str) -> Mapping[str, DataType]:
        """Return the types of the arguments of Python functions."""
        known, filler = self.types
        if filler is None:
            return known
        shape = _shape_of(text)
        made: Mapping[str, DataType] = filler(shape.constants, _literals(shape.constants))
        return made

    def shared(self, number: int, text: str, is_stored: bool) -> SharedQuery:
        """Return what an eddy shares of the query that has a text of this shape."""
        made = self._made(text, ("accepts", "required", "clauses"))
        known = self.outline
        return SharedQuery(
            number,
            made.get("accepts", known.accepts),
            made.get("required", known.required),
            made.get("clauses", known.clauses),
            is_stored,
        )

    def _made(self, text: str, names: Iterable[str]) -> dict[str, Any]:
        """Return those of some fields that depend on constants."""
        constants = _shape_of(text).constants
        literals = _literals(constants)
        return {name: self.holes[name](constants, literals) for name in names if name in self.holes}

    def fits(self, shape: QueryShape) -> bool:
        """Whether the query of a text of this shape differs from others in constants alone."""
        literals = _literals(shape.constants)
        if not self.is_plain and any(
            constant.kind.endswith("whole") and len(literal.lstrip("-")) > _DIGITS_MAX
            for constant in shape.constants
            for literal in constant.literals
        ):
            return False
        try:
            self.decisions.check(literals)
            made = {
                name: self.holes[name](shape.constants, literals)
                for name in ("accepts", "clauses", "predicates", "ordered")
                if name in self.holes
            }
        except UnfitConstantsError:
            return False
        # Predicates with equal texts would have become one.
        ordered = made.get("ordered")
        lists = [made.get("predicates", ()), ordered.predicates if ordered is not None else ()]
        if any(len({spec.key for spec in specs}) < len(specs) for specs in lists):
            return False
        known = self.outline.ordered
        return ordered is None or known is None or len(ordered.guards) == len(known.guards)


def _shape_of(text: str) -> QueryShape:
    shape = QueryShape.of(text)
    assert shape is not None  # else the template would not have been found
    return shape


def _literals(constants: Sequence[Constant]) -> list[Sequence[str]]:
    return [constant.literals for constant in constants]
