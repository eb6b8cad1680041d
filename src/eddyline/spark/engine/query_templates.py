"""Queries whose texts differ only in constants share the work of compiling them.

A template is made by compiling such a text with constants that occur nowhere else, and is used only
if it gives, for a query that was compiled as well, exactly what compiling it gave. Constants that
could matter to Spark's judgement of a query are part of its shape (`docs/decisions/0036`).
Templates live in memory only: a folder cannot bring one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

from eddyline.errors import QueryError
from eddyline.spark.engine.compiled_query import CompiledQuery
from eddyline.spark.engine.compiler import needs_comparison
from eddyline.spark.engine.holes import Holes
from eddyline.spark.engine.query_shape import Constant, QueryShape
from eddyline.spark.engine.query_template import QueryTemplate
from eddyline.sql.formulas import Decisions, FormulaColumns
from eddyline.sql.free_constants import shape_without_free_constants
from eddyline.sql.meaning import shape_of
from eddyline.sql.parse import parse
from eddyline.sql.query import Query
from eddyline.sql.schemas import Schemas

SHAPES_MAX = 1_000
#: Queries of a shape that are compiled before it gets a template.
QUERIES_OF_SHAPE = 2


class _Variant(NamedTuple):
    """A shape with the constants that could matter to Spark."""

    key: str
    kept: tuple[Constant, ...]


class QueryTemplates:
    """Makes queries from templates where their texts differ only in constants.

    Parameters
    ----------
    schemas
        The streams, tables and functions that queries may name.
    compile_query
        Compiles the text of a query, with the schemas that it is given.
    blanked
        Returns an expression over a stream, given by name and text, without the constants that
        cannot change what Spark says of it; None if all of them could.

    Examples
    --------
    >>> schemas = Schemas({"light": {"lux": "int", "room": "string"}})
    >>> def compile_query(text: str, schemas: Schemas) -> CompiledQuery:
    ...     return CompiledQuery(0, "", parse(text, schemas), "count")
    >>> templates = QueryTemplates(schemas, compile_query)
    >>> text = "SELECT lux FROM light WHERE lux > {} OR room LIKE '{}%'"
    >>> for n in range(2):
    ...     templates.learn(compile_query(text.format(n, n), schemas))
    >>> text = text.format(30, "hall")
    >>> templates.find(text).query_of(text) == parse(text, schemas)
    True

    """

    def __init__(
        self,
        schemas: Schemas,
        compile_query: Callable[[str, Schemas], CompiledQuery],
        blanked: Callable[[str, str], str | None] = lambda _, text: shape_without_free_constants(
            text
        ),
    ) -> None:
        self.schemas = schemas
        self._compile_query = compile_query
        self._blanked = blanked
        #: By shape, the places of the constants that could matter to Spark.
        self._kept: dict[str, tuple[int, ...] | None] = {}
        self._templates: dict[_Variant, QueryTemplate | None] = {}
        self._seen: set[str | _Variant] = set()

    def find(self, text: str) -> QueryTemplate | None:
        """Return the template that compiling a text could be spared with; None without one."""
        shape = QueryShape.of(text)
        variant = self._variant(shape)
        template = self._templates.get(variant) if variant is not None else None
        if shape is None or template is None:
            return None
        return template if template.fits(shape) else None

    def learn(self, compiled: CompiledQuery) -> None:
        """Take notice of a compiled query; the second of a shape makes the template."""
        query = compiled.query
        shape = QueryShape.of(query.text)
        if shape is None:
            return
        if shape.key not in self._kept:
            if len(self._kept) >= SHAPES_MAX or not self._is_second(shape.key):
                return
            self._kept[shape.key] = self._find_kept(shape, query)
            if not self._kept[shape.key]:  # the query before it was of this variant, too
                self._is_second(_Variant(shape.key, ()))
        variant = self._variant(shape)
        if variant is not None and self._is_open(variant) and self._is_second(variant):
            self._templates[variant] = self._make_template(shape, compiled)

    def _is_second(self, shape: str | _Variant) -> bool:
        """Whether a shape was seen before; note that it is seen now."""
        if shape in self._seen:
            return True
        if len(self._seen) >= SHAPES_MAX:
            self._seen.clear()
        self._seen.add(shape)
        return False

    def _is_open(self, variant: _Variant) -> bool:
        """Whether a template can still be made."""
        return variant not in self._templates and len(self._templates) < SHAPES_MAX

    def awaits(self, text: str) -> Hashable | None:
        """Return what a text has in common with others of which one more is to be compiled.

        None if a template is known, or none will be.
        """
        shape = QueryShape.of(text)
        if shape is None:
            return None
        if shape.key not in self._kept:
            return shape.key if len(self._kept) < SHAPES_MAX else None
        variant = self._variant(shape)
        return variant if variant is not None and self._is_open(variant) else None

    def _variant(self, shape: QueryShape | None) -> _Variant | None:
        kept = self._kept.get(shape.key) if shape is not None else None
        if shape is None or kept is None:
            return None
        return _Variant(shape.key, tuple([shape.constants[place] for place in kept]))

    def _find_kept(self, shape: QueryShape, query: Query) -> tuple[int, ...] | None:
        """Return the places of the constants that could matter; None if there is no template."""
        if query.join is not None or query.tables:
            return None
        if needs_comparison(query) and shape_of(query) is None:
            return None
        kept: set[int] = set()
        for is_first in (True, False):
            probes = shape.probes(query.text, kept)
            holes = _holes(probes, kept)
            try:
                probe = parse(shape.with_constants(probes), self.schemas)
            except QueryError:
                return None
            ordered = probe.ordered.predicates if probe.ordered is not None else ()
            for spec in (*probe.predicates, *ordered):
                kept.update(*map(holes.places, spec.arguments))
                places = holes.places(spec.condition)
                # The digits of a decimal are its type.
                kept |= {place for place in places if probes[place].kind.endswith("decimal")}
                blanked = self._blanked(probe.stream, spec.condition) if places else ""
                if blanked is None and is_first:  # what Spark was asked has other kept constants
                    blanked = shape_without_free_constants(spec.condition)
                kept |= places if blanked is None else holes.places(blanked)
        return tuple(sorted(kept))

    def _make_template(self, shape: QueryShape, compiled: CompiledQuery) -> QueryTemplate | None:
        """Return the template of a shape, if it gives a compiled query exactly."""
        kept = self._kept[shape.key] or ()
        probes = shape.probes(compiled.query.text, kept)
        holes, decisions = _holes(probes, kept), Decisions()
        columns = functools.partial(FormulaColumns, places=holes.literals, decisions=decisions)
        try:
            probe = self._compile_query(
                shape.with_constants(probes), replace(self.schemas, comparing=columns)
            )
        except QueryError:
            return None
        query = compiled.query
        template = QueryTemplate.of(probe, query, holes, decisions)
        if not template.fits(shape) or template.query_of(query.text) != query:
            return None
        is_same = (
            template.argument_types_of(query.text) == compiled.argument_types
            and template.select_may_fail == compiled.select_may_fail
            and template.select_calls_python == compiled.select_calls_python
        )
        return template if is_same else None


def _holes(probes: Sequence[Constant], kept: Collection[int]) -> Holes:
    return Holes({place: probe for place, probe in enumerate(probes) if place not in kept})
