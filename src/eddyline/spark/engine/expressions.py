"""What Spark says of SQL expressions over a stream, asked for many of them at once.

One by one, each expression takes a round trip to Spark and a plan; up to a hundred of them share
one (`docs/decisions/0029`).
"""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql.types import BooleanType, DataType, StructType

from eddyline.errors import QueryError
from eddyline.spark.native.failing import casts_may_raise, text_may_raise
from eddyline.sql.free_constants import shape_without_free_constants
from eddyline.sql.meaning import CONSTANT, with_alias, without_constants
from eddyline.sql.placeholders import RESERVED, STREAM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Expressions in one plan.
EXPRESSIONS_MAX = 100
_NAME = f"{RESERVED}_"
#: In front of the text of an expression that cannot fail.
_HARMLESS = "harmless: "
_ALIAS = re.compile(rf" AS {_NAME}(\d+)#\d+L?(?:, |\]$)")
SHAPES_MAX = 10_000
ALIASES_MAX = 100
#: Calls of functions with a regular expression: Spark checks the numbers among their arguments.
_PATTERN = re.compile("rlike|regexp", re.IGNORECASE)
#: A list of constants of one type without their values: how many there are does not matter.
_LIST = re.compile(r"\bIN \((''|0|0+\.0+)(?:, \1)+\)")
_SEPARATOR = "\x1f"
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`", re.DOTALL)


class Expression(NamedTuple):
    """An expression: what the stream is called in it, as SQL, and its text."""

    alias: str
    text: str


class Analysis(NamedTuple):
    """What Spark says of an expression.

    Parameters
    ----------
    data_type
        Its type.
    analysed, optimised
        How Spark writes it after it made types fit, and after it simplified it.

    """

    data_type: DataType
    analysed: str
    optimised: str


class StreamExpressions:
    """Analyses SQL expressions over one stream.

    Parameters
    ----------
    spark
        Session in which they are analysed.
    schema
        Columns of the stream.

    Examples
    --------
    >>> from pyspark.sql.types import StructType
    >>> over = StreamExpressions(spark, StructType.fromDDL("a int, b string"))
    >>> over.type_of("`__eddyline_stream`.`a` + 1").simpleString()
    'int'
    >>> over.could_fail("`__eddyline_stream`.`a` > 1L"), over.could_fail("length(b) > 1")
    (True, False)
    >>> same = Expression("`s`", "equal_null(s.A > 1, `s`.`a` > 1)")
    >>> over.prepare([same])
    >>> over.is_true(same)
    True

    """

    def __init__(self, spark: SparkSession, schema: StructType) -> None:
        self._spark = spark
        self.schema = schema
        self._empty = spark.createDataFrame([], schema)
        self._split = spark._jvm.java.util.regex.Pattern.compile(_SEPARATOR).split
        self._names = frozenset(name.lower() for name in schema.names)
        #: The stream without rows, as Spark's own object, by alias.
        self._by_alias: dict[str, Any] = {}
        self._known: dict[Expression, Analysis] = {}
        #: By text without the constants that do not matter: of expressions that cannot fail all of
        #: them, of others those that no computation depends on.
        self._shared: dict[str, Analysis] = {}
        #: How many queries of each shape Spark was seen to read as the parser does.
        self.read_alike: collections.Counter[tuple[str, str]] = collections.Counter()

    def forget(self) -> None:
        """Analyse expressions again from now on: functions that they call may have changed."""
        self._known.clear()

    def prepare(self, expressions: Iterable[Expression]) -> None:
        """Analyse many expressions at once; those that Spark refuses are left out."""
        first: list[Expression] = []
        others: list[Expression] = []
        shapes: set[str] = set()
        for expression in dict.fromkeys(expressions):
            if not self._recall(expression):
                own = _shapes(expression)
                (others if shapes.intersection(own) else first).append(expression)
                shapes.update(own)
        self._analyse_all(first)
        self._analyse_all([each for each in others if not self._recall(each)])

    def _recall(self, expression: Expression) -> bool:
        """Whether an expression was analysed, or one that differs only in constants."""
        if expression in self._known:
            return True
        found = next((self._shared[s] for s in _shapes(expression) if s in self._shared), None)
        if found is not None:
            self._known[expression] = found
        return found is not None

    def _keep(self, expression: Expression, analysis: Analysis) -> None:
        """Keep an analysis, also for expressions with other constants if it holds for them."""
        self._known[expression] = analysis
        shape = _shared_shape(expression, analysis)
        if shape is not None:
            if len(self._shared) >= SHAPES_MAX:
                self._shared.clear()
            self._shared[shape] = analysis

    def _analyse_all(self, expressions: Iterable[Expression]) -> None:
        by_alias: dict[str, list[Expression]] = {}
        for expression in expressions:
            alias = expression.alias
            if alias[1:-1].lower() not in self._names:  # else `a.b` could be a field of column a
                alias = f"`{STREAM}`"
            by_alias.setdefault(alias, []).append(expression)
        for alias, own in by_alias.items():
            for begin in range(0, len(own), EXPRESSIONS_MAX):
                self._try(alias, own[begin : begin + EXPRESSIONS_MAX])

    def _try(self, alias: str, expressions: Sequence[Expression]) -> None:
        """Analyse expressions, in halves if one of them is refused."""
        try:
            found = self._analyse(alias, expressions)
        except (PySparkException, Py4JError):
            found = None
        if found is not None:
            for expression, analysis in zip(expressions, found, strict=True):
                self._keep(expression, analysis)
        elif len(expressions) > 1:
            middle = len(expressions) // 2
            self._try(alias, expressions[:middle])
            self._try(alias, expressions[middle:])

    def _analyse(self, alias: str, expressions: Sequence[Expression]) -> list[Analysis] | None:
        """Return what Spark says, in eight round trips; None if it does not say it as a list."""
        texts = [
            text if own == alias else with_alias(text, own, alias) for own, text in expressions
        ]
        named = [f"{text} AS {_NAME}{place}" for place, text in enumerate(texts)]
        frame = self._aliased(alias).selectExpr(self._split(_SEPARATOR.join(named)))
        plans = frame.queryExecution()
        plan = plans.analyzed()
        analysed = _items(plan, len(texts))
        optimised = _items(plans.optimizedPlan(), len(texts))
        if analysed is None or optimised is None:
            return None
        schema = StructType.fromJson(json.loads(plan.schema().json()))
        types = [column.dataType for column in schema]
        return [Analysis(*parts) for parts in zip(types, analysed, optimised, strict=True)]

    def _aliased(self, alias: str) -> Any:
        if alias not in self._by_alias:
            if len(self._by_alias) >= ALIASES_MAX:
                self._by_alias.clear()
            self._by_alias[alias] = self._empty.alias(alias[1:-1].replace("``", "`"))._jdf
        return self._by_alias[alias]

    # --- answers -----------------------------------------------------------------------------

    def type_of(self, text: str) -> DataType:
        """Return the type of an expression over `STREAM`; raise as Spark does if it refuses it."""
        return self._analysis(_over_stream(text)).data_type

    def could_fail(self, text: str) -> bool:
        """Whether an expression over `STREAM` could fail on a row, as far as its text tells."""
        return text_may_raise(without_names(text)) or _could_fail(
            text, self._analysis(_over_stream(text))
        )

    def blanked(self, text: str) -> str | None:
        """Return an expression over `STREAM` without the constants that cannot matter to Spark.

        None if neither it nor one with other such constants was analysed.
        """
        found = next((s for s in _shapes(_over_stream(text)) if s in self._shared), None)
        return None if found is None else found.removeprefix(_HARMLESS)

    def accepts(self, texts: Iterable[str]) -> bool:
        """Whether expressions over `STREAM` were analysed and not refused."""
        return all(_over_stream(text) in self._known for text in texts)

    def are_conditions(self, texts: Iterable[str]) -> bool:
        """Whether expressions over `STREAM` were analysed and are of type boolean."""
        analyses = [self._known.get(_over_stream(text)) for text in texts]
        return all(a is not None and isinstance(a.data_type, BooleanType) for a in analyses)

    def are_safe(self, texts: Iterable[str]) -> bool:
        """Whether Spark adds no cast to expressions over `STREAM` that could fail on a row.

        False also for expressions that it refused.
        """
        analyses = [self._known.get(_over_stream(text)) for text in texts]
        return all(a is not None and not casts_may_raise(a.analysed) for a in analyses)

    def is_true(self, expression: Expression) -> bool:
        """Whether Spark finds a condition true whatever the row; False if it refused it."""
        analysis = self._known.get(expression)
        return analysis is not None and analysis.optimised == "true"

    def _analysis(self, expression: Expression) -> Analysis:
        if not self._recall(expression):
            found = self._analyse(expression.alias, [expression])
            if found is None:  # Spark needs more than one row for it, or makes several of one
                raise QueryError(f"{expression.text} is not an expression over single rows")
            self._keep(expression, found[0])
        return self._known[expression]


def without_names(text: str) -> str:
    """Return an expression without its texts and names, in which operators could seem to be.

    Examples
    --------
    >>> without_names("`it's` = 'a`b' AND 1 / `a-b` > 2")
    "`name` = '' AND 1 / `name` > 2"

    """
    return _QUOTED.sub(lambda quoted: "`name`" if quoted[0][0] == "`" else "''", text)


def _over_stream(text: str) -> Expression:
    return Expression(f"`{STREAM}`", text)


def _could_fail(text: str, analysis: Analysis) -> bool:
    return text_may_raise(without_names(text)) or casts_may_raise(analysis.analysed)


def _shapes(expression: Expression) -> list[str]:
    """Return under which texts an analysis for other constants may be kept."""
    if expression.alias != f"`{STREAM}`":
        return []
    text = expression.text
    harmless = None if _PATTERN.search(text) else without_constants(text)
    shapes = [_HARMLESS + harmless] if harmless is not None else []
    other = shape_without_free_constants(text)
    shapes += [other] if other is not None else []
    return [_LIST.sub(r"IN (\1)", shape) for shape in shapes]


def _shared_shape(expression: Expression, analysis: Analysis) -> str | None:
    """Return under which of these texts an analysis holds; None if only as it is.

    Constants of an expression that could fail are not shared if Spark casts one: the cast is what
    may fail. Nor is a decimal type: it depends on the digits of constants.
    """
    shapes = _shapes(expression)
    if shapes and shapes[0].startswith(_HARMLESS):
        harmless = shapes.pop(0)
        if not _could_fail(expression.text, analysis):
            return harmless
    if not shapes or "decimal" in analysis.data_type.simpleString():
        return None
    texts = [constant[1:-1] for constant in CONSTANT.findall(expression.text) if constant[0] == "'"]
    return None if any(f"cast({text} as " in analysis.analysed for text in texts) else shapes[0]


def _items(plan: object, count: int) -> list[str] | None:
    """Return how Spark writes the items of a projection; None if the plan is another one."""
    text = str(plan.simpleString(2**31 - 1))  # type: ignore[attr-defined]
    head = "Project ["
    if not text.startswith(head):
        return None
    pieces = _ALIAS.split(text[len(head) :])
    places = [int(place) for place in pieces[1::2]]
    return pieces[:-1:2] if places == list(range(count)) and pieces[-1] == "" else None
