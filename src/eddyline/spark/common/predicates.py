"""What a user may hand to `el.where`: SQL text, Columns, Python functions, lookups."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from eddyline.errors import InvalidPredicateError, LookupTableError
from eddyline.spark.common.predicate_checks import (
    FunctionKind,
    check_arity,
    check_flag,
    check_name,
    check_returns_boolean,
    function_name,
    key_pairs,
    kind_of_udf,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


LOOKUP_ROWS_MAX = 1_000_000

_LITERALS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|/\*.*?\*/", re.DOTALL)
_NONDETERMINISTIC = re.compile(
    r"(?<![\w.])`?(rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|"
    r"spark_partition_id|input_file_name|input_file_block_start|input_file_block_length|"
    r"(?:try_)?reflect|java_method)`?\s*\(",
    re.IGNORECASE,
)


def without_literals(condition: str) -> str:
    """Return a condition without quoted text and comments, to look for names in it.

    Examples
    --------
    >>> without_literals("name like '%rand()%' and rand() < 0.5")
    'name like  and rand() < 0.5'

    """
    return _LITERALS.sub("", condition)


class NativePredicate:
    """A condition that Spark evaluates itself, in the JVM, before Python is reached.

    Parameters
    ----------
    condition
        SQL text or a Column.
    name
        Its name in reports and errors. Default: the alias of the Column, or its text.
    may_fail
        Whether it could fail on some row. None: decided by its syntax.

    """

    def __init__(
        self, condition: str | Column, name: str | None = None, may_fail: bool | None = None
    ) -> None:
        self.condition = condition
        self.may_fail = may_fail
        if isinstance(condition, str):
            text, alias = condition, None
        else:
            text, alias = _column_text(condition), _column_alias(condition)
        self.name = name or alias or text
        # By the names of Spark's functions: only the JVM could tell from the plan.
        self.deterministic = not _NONDETERMINISTIC.search(without_literals(text))

    def column(self) -> Column:
        """Return the condition as a Column."""
        from pyspark.sql import functions as F

        return F.expr(self.condition) if isinstance(self.condition, str) else self.condition

    def __repr__(self) -> str:
        return f"el.expr({self.name!r})"


class SharedArgument:
    """A value that several predicates take as an argument; made by `el.shared`."""

    def __init__(
        self,
        function: Callable[..., Any],
        columns: tuple[str | Column | SharedArgument, ...],
        name: str,
    ) -> None:
        self.function = function
        self.columns = columns
        self.name = name

    def __repr__(self) -> str:
        return f"el.shared({self.name}, {', '.join(map(repr, self.columns))})"


class PythonPredicate:
    """A Python function and the columns it is called with; made by `el.udf`."""

    def __init__(
        self,
        function: Callable[..., Any],
        kind: FunctionKind,
        columns: tuple[str | Column | SharedArgument, ...],
        name: str,
        deterministic: bool,
        other_answers: Literal["refuse", "null", "cast"],
    ) -> None:
        self.function = function
        self.kind = kind
        self.columns = columns
        self.name = name
        self.deterministic = deterministic
        self.other_answers = other_answers

    def __repr__(self) -> str:
        return f"el.udf({self.name}, {', '.join(map(repr, self.columns))})"


class LookupPredicate:
    """A semi- or anti-join with a small table; made by `el.lookup`."""

    deterministic = True

    def __init__(
        self,
        table: DataFrame,
        columns: tuple[str, ...],
        keys: tuple[str, ...],
        anti: bool,
        name: str,
        rows_max: int,
    ) -> None:
        self.table = table
        self.columns = columns
        self.keys = keys
        self.anti = anti
        self.name = name
        self.rows_max = rows_max

    def __repr__(self) -> str:
        return f"el.lookup(on={list(self.columns)}, anti={self.anti})"


Predicate = NativePredicate | PythonPredicate | LookupPredicate


def expr(
    condition: str | Column, name: str | None = None, may_fail: bool | None = None
) -> NativePredicate:
    """Make a predicate for `el.where` from a condition that Spark evaluates itself.

    `el.where` takes SQL text and Columns as they are, too; `el.expr` adds options.

    Parameters
    ----------
    condition
        SQL text or a Column.
    name
        Its name in reports and errors. Default: its text.
    may_fail
        Whether it could fail on some row. Such a condition keeps its written place, because one
        written before it may protect it. None: decided by its syntax, and what is not known to be
        harmless counts as something that can fail. False: you know that it fails on no row of your
        data, and it may be reordered.

    Examples
    --------
    >>> import eddyline as el
    >>> orders = spark.createDataFrame([(1, 40, 8), (2, 90, 3)], "id int, price int, pieces int")
    >>> f = el.where("id > 0", el.expr("price / pieces > 20", name="dear", may_fail=False))
    >>> orders.transform(f).show()
    +---+-----+------+
    | id|price|pieces|
    +---+-----+------+
    |  2|   90|     3|
    +---+-----+------+
    <BLANKLINE>

    """
    if isinstance(condition, str) and not condition.strip():
        raise InvalidPredicateError("an empty string is not a predicate; write a SQL condition")
    if not isinstance(condition, str) and not _is_column(condition):
        raise InvalidPredicateError(
            f"el.expr needs SQL text or a Column, not {type(condition).__name__}"
        )
    check_name(name, "el.expr")
    check_flag(may_fail, "may_fail")
    return NativePredicate(condition, name, may_fail)


def udf(
    function: Callable[..., Any],
    *columns: str | Column | SharedArgument,
    name: str | None = None,
    deterministic: bool | None = None,
) -> PythonPredicate:
    """Make a predicate for `el.where` from a Python function.

    Parameters
    ----------
    function
        A plain function, called once a row, or a PySpark `udf`, `pandas_udf` or `arrow_udf`
        with the return type boolean, scalar or iterator. It is called as Spark would call it, with
        the same values, None for NULL, and keeps a row if it answers True.
    columns
        The columns it is called with, as names or Columns, or values made by `el.shared`.
    name
        Its name in reports and errors. Default: the function's own name.
    deterministic
        False if the function may answer differently for the same row: it then keeps its written
        place. Default: what the PySpark function says of itself, else True.

    Examples
    --------
    >>> import eddyline as el
    >>> el.udf(lambda text: "spark" in text, "text", name="mentions_spark")
    el.udf(mentions_spark, 'text')

    """
    if isinstance(function, str) or not callable(function):
        raise InvalidPredicateError(
            f"el.udf needs a function, not {type(function).__name__}; pass SQL text and Columns "
            f"to el.where as they are"
        )
    check_name(name, "el.udf")
    check_flag(deterministic, "deterministic")
    kind: FunctionKind = "row"
    other_answers: Literal["refuse", "null", "cast"] = "refuse"
    plain = function
    label = name or function_name(function)
    if hasattr(function, "evalType"):
        kind, other_answers = kind_of_udf(function, label)
        plain = function.func  # type: ignore[attr-defined]
        check_returns_boolean(function, label)
        if deterministic is None:
            deterministic = bool(getattr(function, "deterministic", True))
    check_arity(plain, kind, columns, label)
    if kind != "row" and any(isinstance(column, SharedArgument) for column in columns):
        raise InvalidPredicateError(
            f"predicate {label!r} is called with whole columns; a value made by el.shared is for "
            f"functions that are called once a row: pass a plain function or a udf"
        )
    return PythonPredicate(plain, kind, columns, label, deterministic is not False, other_answers)


def shared(
    function: Callable[..., Any],
    *columns: str | Column | SharedArgument,
    name: str | None = None,
) -> SharedArgument:
    """Make a value that several predicates of a filter take as an argument.

    It is computed at most once a row, and only for rows on which a predicate that needs it is
    reached; the time counts as that predicate's. If computing it raises, that is the error of the
    predicate that needed it, held back per row like any other.

    Parameters
    ----------
    function
        A plain function, called once a row. Predicates get its result as it is, all of them the
        same object: they must not change it.
    columns
        What it is called with: columns, as names or Columns, or other shared values.
    name
        Its name in `repr` and errors. Default: the function's own name.

    Examples
    --------
    >>> import json
    >>> import eddyline as el
    >>> posts = spark.createDataFrame(
    ...     [(1, '{"lang": "en", "likes": 7}'), (2, '{"lang": "de", "likes": 9}')],
    ...     "id int, body string")
    >>> post = el.shared(json.loads, "body", name="post")
    >>> f = el.where(
    ...     el.udf(lambda post: post["lang"] == "en", post, name="english"),
    ...     el.udf(lambda post: post["likes"] > 5, post, name="liked"))
    >>> [row.id for row in posts.transform(f).collect()]
    [1]

    """
    if isinstance(function, str) or not callable(function) or hasattr(function, "evalType"):
        kind = "a PySpark udf" if hasattr(function, "evalType") else type(function).__name__
        raise InvalidPredicateError(
            f"el.shared needs a plain function, not {kind}; pass the Python function itself"
        )
    check_name(name, "el.shared")
    label = name or function_name(function)
    check_arity(function, "row", columns, label)
    return SharedArgument(function, columns, label)


def lookup(
    table: DataFrame,
    on: str | Sequence[str] | Mapping[str, str],
    anti: bool = False,
    name: str | None = None,
    rows_max: int = LOOKUP_ROWS_MAX,
) -> LookupPredicate:
    """Make a predicate for `el.where` that keeps rows with a match in a small table.

    Parameters
    ----------
    table
        A batch DataFrame. It is read when the filter is applied to a DataFrame, and its distinct
        keys are shipped to every worker.
    on
        Key columns, of the same names on both sides, or a mapping from the filtered DataFrame's
        columns to the table's.
    anti
        Keep the rows *without* a match instead. As in SQL's left anti join, a row with a NULL in
        its key has no match and is kept; the semi-join drops it.
    name
        Its name in reports and errors.
    rows_max
        Largest number of distinct keys to ship; more is an error.

    Examples
    --------
    >>> import eddyline as el
    >>> blocked = spark.createDataFrame([("spam.example",)], "domain string")
    >>> docs = spark.createDataFrame(
    ...     [(1, "spam.example"), (2, "ok.example")], "id int, domain string")
    >>> docs.transform(el.where(el.lookup(blocked, on="domain", anti=True))).show()
    +---+----------+
    | id|    domain|
    +---+----------+
    |  2|ok.example|
    +---+----------+
    <BLANKLINE>

    """
    if not hasattr(table, "columns") or not hasattr(table, "isStreaming"):
        raise LookupTableError(
            f"el.lookup needs a Spark DataFrame, not {type(table).__name__}; "
            f"make one with spark.createDataFrame(...)"
        )
    check_name(name, "el.lookup")
    pairs = key_pairs(on)
    columns, keys = tuple(pairs), tuple(pairs.values())
    label = name or f"{'not ' if anti else ''}in lookup({', '.join(columns)})"
    if table.isStreaming:
        raise LookupTableError(
            f"{label}: the table is a streaming DataFrame; a lookup needs a batch DataFrame, "
            f"joins between streams need an engine"
        )
    missing = [key for key in keys if key not in table.columns]
    if missing:
        raise LookupTableError(
            f"{label}: the table has no column {missing[0]!r}; it has {', '.join(table.columns)}"
        )
    if rows_max < 1:
        raise LookupTableError(f"{label}: rows_max must be at least 1, not {rows_max}")
    return LookupPredicate(table, columns, keys, anti, label, rows_max)


def to_predicate(given: object) -> Predicate:
    """Return an argument of `el.where` as a predicate; an error says why it cannot be one."""
    if isinstance(given, Predicate):
        return given
    if isinstance(given, str) or _is_column(given):
        return expr(given)
    if isinstance(given, SharedArgument):
        raise InvalidPredicateError(
            f"{given!r} is a value, not a predicate; pass it to el.udf as an argument"
        )
    if callable(given):
        raise InvalidPredicateError(
            f"{function_name(given)} is a function; say which columns it is called with: "
            f'el.udf({function_name(given)}, "column")'
        )
    if isinstance(given, list | tuple):
        raise InvalidPredicateError(
            f"a {type(given).__name__} is not a predicate; unpack it: el.where(*predicates)"
        )
    raise InvalidPredicateError(
        f"{type(given).__name__} is not a predicate; pass SQL text, a Column, el.udf(...) or "
        f"el.lookup(...)"
    )


def is_portable(predicate: Predicate) -> bool:
    """Whether a predicate may leave its Spark session: it holds neither a table nor a Column."""
    if isinstance(predicate, PythonPredicate):
        return all(_is_portable_argument(column) for column in predicate.columns)
    return isinstance(predicate, NativePredicate) and isinstance(predicate.condition, str)


def _is_portable_argument(argument: str | Column | SharedArgument) -> bool:
    if isinstance(argument, SharedArgument):
        return all(_is_portable_argument(column) for column in argument.columns)
    return isinstance(argument, str)


def with_unique_names(predicates: Sequence[Predicate]) -> list[Predicate]:
    """Return the predicates with a number behind each name that was already taken, for reports."""
    taken: set[str] = set()
    unique: list[Predicate] = []
    for predicate in predicates:
        named = copy.copy(predicate)  # the user may have passed it to another `where` too
        number = 1
        while named.name in taken:
            number += 1
            named.name = f"{predicate.name}#{number}"
        taken.add(named.name)
        unique.append(named)
    return unique


def _is_column(given: object) -> bool:
    return any(c.__name__ == "Column" and "pyspark" in c.__module__ for c in type(given).__mro__)


def _column_text(column: Column) -> str:
    return re.sub(r"^Column<['\"](.*)['\"]>$", r"\1", str(column), flags=re.DOTALL)


def _column_alias(column: Column) -> str | None:
    """Return the alias of a Column; None if it has none.

    Its text does not tell: `a = 'x' AS b` may be a comparison with an alias or with a text.
    """
    fields = vars(column)  # any other name would be taken for a field of a struct
    if "_expr" in fields:  # Connect
        names: Sequence[Any] = getattr(fields["_expr"], "_alias", None) or ()
        return str(names[0]) if len(names) == 1 else None
    node = fields["_jc"].node()
    is_alias = node.getClass().getSimpleName() == "Alias" and node.name().size() == 1
    return str(node.name().apply(0)) if is_alias else None
