"""Queries whose texts differ only in constants share the work of compiling them.

A template is made by compiling such a text with constants that occur nowhere else, and is used only
if it gives, for a query that was compiled as well, exactly what compiling it gave. Whatever is not
a plain list of comparisons is compiled by itself. Templates live in memory only: a folder cannot
bring one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

from pyspark.sql.types import DataType
from sqlglot import exp

from eddyline.errors import QueryError
from eddyline.fabric.shared.query import SharedQuery
from eddyline.operators.domain import Text, Whole
from eddyline.operators.value_set import ValueSet
from eddyline.spark.engine.compiled_join import CompiledJoin
from eddyline.sql.comparison import COMPARISON_SIGNS, ColumnTypes, to_values
from eddyline.sql.placeholders import RESERVED
from eddyline.sql.query import Query
from eddyline.sql.schemas import Schemas
from eddyline.sql.value_types import INTEGERS

SHAPES_MAX = 1_000
VALUE_SETS_MAX = 200
_HEAD = re.compile(r"SELECT (?:\*|\w+(?:, ?\w+)*) FROM \w+ WHERE ", re.ASCII | re.IGNORECASE)
_AND = re.compile(r"( AND )", re.IGNORECASE)
# Constants are plain: no escapes, no braces, no empty text, no exponents, at most 18 digits.
_COMPARISON = re.compile(
    r"(?P<column>\w+) ?(?P<sign>=|<>|!=|<=|>=|<|>) ?(?P<minus>-?)"
    r"(?:(?P<whole>\d{1,18})|(?P<decimal>\d{1,9}\.\d{1,9})|"
    r"'(?:(?P<day>\d{4}-\d\d-\d\d)|(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)|"
    r"(?P<text>[ -&(-\[\]-z|~]+))')",
    re.ASCII,
)
#: For each kind of constant, one that stands nowhere else in a query; {} is its position.
_PROBES = {
    "whole": "70{:02}3",
    "decimal": "70{:02}3.25",
    "day": "1987-03-{:02}",
    "time": "1987-03-{:02} 04:05:06",
    "text": "zq{:02}qz",
}
_COMPARISONS_MAX = 20
_STRINGS, _NUMBERS = Text(), Whole()
_COMPARISONS = {sign: kind for kind, sign in COMPARISON_SIGNS.items()} | {"!=": exp.NEQ}
_WITH_CONSTANTS = ("text", "accepts", "conditions", "where", "written", "understood")


class _Constant(NamedTuple):
    """A constant of a query: its column and comparison as written, and itself without quotes."""

    column: str
    sign: str
    kind: str
    text: str

    @property
    def is_negative(self) -> bool:
        return self.sign.endswith("-")


class _Shape(NamedTuple):
    """A query text around its constants, and the constants."""

    key: tuple[str, ...]
    constants: tuple[_Constant, ...]

    @classmethod
    def of(cls, text: str) -> _Shape | None:
        """Return the shape of a text; None if it is not a plain list of comparisons."""
        head = _HEAD.match(text)
        if head is None or RESERVED in text.lower():
            return None
        parts = _AND.split(text[head.end() :])
        if len(parts) > 2 * _COMPARISONS_MAX:
            return None
        key, constants = [head[0]], []
        for comparison, separator in zip(parts[::2], [*parts[1::2], ""], strict=True):
            found = _COMPARISON.fullmatch(comparison)
            if found is None:
                return None
            kind = str(found.lastgroup)
            begin, end = found.span(kind)
            key += [comparison[:begin], kind, comparison[end:] + separator]
            sign = found["sign"] + found["minus"]
            constants.append(_Constant(found["column"], sign, kind, found[kind]))
        return cls(tuple(key), tuple(constants))

    def probe(self) -> tuple[str, list[str]]:
        """Return a text of this shape with other constants, and these constants."""
        probes = [
            _PROBES[constant.kind].format(place)
            for place, constant in enumerate(self.constants, start=1)
        ]
        pieces = [self.key[0]]
        for place, probe in enumerate(probes):
            before, _, after = self.key[3 * place + 1 : 3 * place + 4]
            pieces += [before, probe, after]
        return "".join(pieces), probes


@dataclass(frozen=True, eq=False)
class QueryTemplate:
    """A compiled query in which constants can be replaced.

    Parameters
    ----------
    templates
        Knows the values that comparisons with constants accept.
    outline
        A query of this shape; others differ from it in their constants.
    fixed
        The fields of the query that do not depend on constants.
    written, understood
        These texts of the query, cut at its constants.
    conditions
        Each condition, cut at its constant.

    """

    templates: QueryTemplates
    outline: Query
    fixed: Mapping[str, Any]
    written: Sequence[str]
    understood: Sequence[str]
    conditions: Sequence[Sequence[str]]
    #: As in `CompiledQuery`: its queries call no function and compute nothing in SELECT.
    argument_types: ClassVar[Mapping[str, DataType]] = {}
    select_may_fail: ClassVar[bool] = False
    select_calls_python: ClassVar[bool] = False
    join: ClassVar[CompiledJoin | None] = None

    @classmethod
    def of(
        cls, templates: QueryTemplates, query: Query, probes: Sequence[str]
    ) -> QueryTemplate | None:
        """Return the template of a query that was compiled from a probe, if it can be one."""
        written, understood = _cut(query.written, probes), _cut(query.understood, probes)
        if written is None or understood is None or len(query.conditions) != len(probes):
            return None
        conditions = []
        for condition, probe in zip(query.conditions, probes, strict=True):
            pieces = _cut(condition, [probe])
            if pieces is None:
                return None
            conditions.append(pieces)
        has_other_parts = query.predicates or query.clauses or query.lookups or query.functions
        if has_other_parts or not query.is_plain or any(probe in query.result for probe in probes):
            return None
        fixed = {
            field.name: getattr(query, field.name)
            for field in fields(query)
            if field.name not in _WITH_CONSTANTS
        }
        return cls(templates, query, fixed, written, understood, conditions)

    def query_of(self, text: str) -> Query:
        """Return the query that has a text of this shape."""
        query = self.templates.fill_template(self, text)
        assert query is not None  # else it had been compiled by itself
        return query

    def shared(self, number: int, text: str, is_stored: bool) -> SharedQuery:
        """Return what an eddy shares of the query that has a text of this shape."""
        return SharedQuery(number, self.templates.accepts(self, text) or {}, is_stored=is_stored)

    def fill(self, text: str, constants: Sequence[str], accepts: Mapping[str, ValueSet]) -> Query:
        """Return the query with other constants, and the values that these accept."""
        pairs = zip(self.conditions, constants, strict=True)
        conditions = [constant.join(pieces) for pieces, constant in pairs]
        return Query(
            text=text,
            accepts=accepts,
            conditions=tuple(conditions),
            where=" AND ".join([f"({condition})" for condition in conditions]),
            written=_join(self.written, constants),
            understood=_join(self.understood, constants),
            **self.fixed,
        )


class QueryTemplates:
    """Makes queries from templates where their texts differ only in constants.

    Parameters
    ----------
    schemas
        The streams, tables and functions that queries may name.
    compile_query
        Compiles the text of a query.

    Examples
    --------
    >>> from eddyline.sql.parse import parse
    >>> schemas = Schemas({"light": {"lux": "int"}})
    >>> templates = QueryTemplates(schemas, lambda text: parse(text, schemas))
    >>> for text in ("SELECT lux FROM light WHERE lux > 1", "SELECT lux FROM light WHERE lux > 2"):
    ...     templates.learn(parse(text, schemas))
    >>> text = "SELECT lux FROM light WHERE lux > 30"
    >>> templates.fill(text) == parse(text, schemas)
    True

    """

    def __init__(self, schemas: Schemas, compile_query: Callable[[str], Query]) -> None:
        self.schemas = schemas
        self._columns = {
            name: {column.lower(): column for column in types}
            for name, types in schemas.streams.items()
        }
        self._compile_query = compile_query
        self._templates: dict[tuple[str, ...], QueryTemplate | None] = {}
        self._seen: set[tuple[str, ...]] = set()
        self._value_sets: dict[tuple[str, str, str, str], ValueSet | None] = {}
        self._types: dict[str, ColumnTypes] = {}

    def fill(self, text: str) -> Query | None:
        """Return what compiling a text would give; None if it has to be compiled."""
        template = self.find(text)
        return None if template is None else self.fill_template(template, text)

    def find(self, text: str) -> QueryTemplate | None:
        """Return the template that compiling a text could be spared with; None without one."""
        shape = _Shape.of(text)
        template = self._templates.get(shape.key) if shape is not None else None
        if shape is None or template is None:
            return None
        return None if self._accepts(template, shape.constants) is None else template

    def fill_template(self, template: QueryTemplate, text: str) -> Query | None:
        """Return the query of a template that has a text; None if only compiling it can tell."""
        shape = _Shape.of(text)
        accepts = None if shape is None else self._accepts(template, shape.constants)
        if shape is None or accepts is None:
            return None
        return template.fill(text, [constant.text for constant in shape.constants], accepts)

    def accepts(self, template: QueryTemplate, text: str) -> dict[str, ValueSet] | None:
        """Return the values that the query of a template accepts, by column."""
        shape = _Shape.of(text)
        return None if shape is None else self._accepts(template, shape.constants)

    def learn(self, query: Query) -> None:
        """Take notice of a compiled query; the second of a shape makes the template."""
        shape = _Shape.of(query.text)
        if shape is None or shape.key in self._templates:
            return
        if shape.key in self._seen:
            self._templates[shape.key] = self._make_template(shape, query)
        elif len(self._seen) < SHAPES_MAX:
            self._seen.add(shape.key)

    def _make_template(self, shape: _Shape, query: Query) -> QueryTemplate | None:
        """Return the template of a shape, if it gives a compiled query exactly."""
        text, probes = shape.probe()
        try:
            template = QueryTemplate.of(self, self._compile_query(text), probes)
        except QueryError:
            return None
        if template is None or self.fill_template(template, query.text) != query:
            return None
        return template

    def _accepts(
        self, template: QueryTemplate, constants: Sequence[_Constant]
    ) -> dict[str, ValueSet] | None:
        stream = template.outline.stream
        names, types = self._columns[stream], self.schemas.streams[stream]
        accepts: dict[str, ValueSet] = {}
        for constant in constants:
            name = names.get(constant.column.lower())
            values = self._values(types[name], constant) if name is not None else None
            if name is None or values is None:
                return None
            accepts[name] = accepts[name] & values if name in accepts else values
        return accepts

    def _values(self, data_type: str, constant: _Constant) -> ValueSet | None:
        """Return the values that a comparison accepts; None if only Spark can tell."""
        key = (data_type, constant.sign, constant.kind, constant.text)
        if key not in self._value_sets:
            if len(self._value_sets) >= VALUE_SETS_MAX:
                self._value_sets.clear()
            self._value_sets[key] = self._make_values(data_type, constant)
        return self._value_sets[key]

    def _make_values(self, data_type: str, constant: _Constant) -> ValueSet | None:
        sign = constant.sign.removesuffix("-")
        plain_sign = "<>" if sign == "!=" else sign
        if constant.kind == "text" and data_type == "string":  # whatever the settings
            return _STRINGS.compare(plain_sign, constant.text)
        if constant.kind == "whole" and data_type in INTEGERS:
            number = int(constant.text)
            return _NUMBERS.compare(plain_sign, -number if constant.is_negative else number)
        is_text = constant.kind not in ("whole", "decimal")
        node: exp.Expression = exp.Literal(this=constant.text, is_string=is_text)
        if constant.is_negative:
            node = exp.Neg(this=node)
        if data_type not in self._types:
            schemas = self.schemas
            self._types[data_type] = ColumnTypes({"c": data_type}, schemas.timezone, schemas.ansi)
        column = exp.Column(this=exp.Identifier(this="c", quoted=True))
        literal = _COMPARISONS[sign](this=column, expression=node)
        found = to_values(literal, self._types[data_type])
        return None if found is None else found[1]


def _cut(text: str, probes: Sequence[str]) -> list[str] | None:
    """Return the pieces between the probes; None unless each stands there once, in this order."""
    pieces = []
    for probe in probes:
        before, found, text = text.partition(probe)
        if not found:
            return None
        pieces.append(before)
    pieces.append(text)
    return None if any(probe in piece for probe in probes for piece in pieces) else pieces


def _join(pieces: Sequence[str], constants: Sequence[str]) -> str:
    parts = [pieces[0]]
    for constant, piece in zip(constants, pieces[1:], strict=True):
        parts += [constant, piece]
    return "".join(parts)
