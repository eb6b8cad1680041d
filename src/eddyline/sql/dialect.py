"""Spark SQL as sqlglot reads and writes it, with function calls kept as they are written.

sqlglot parses many functions into classes of its own and writes some of them differently, with
results that can differ in the last digit (`docs/decisions/0012`). A continuous query needs only
the structure of the SQL; Spark evaluates the functions.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType


class VerbatimSpark(Spark):
    """The Spark dialect without sqlglot's knowledge of functions."""

    class Tokenizer(Spark.Tokenizer):
        """Accepts a doubled quote inside a string literal."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(Spark.Parser):
        """Reads every function call as an `Anonymous` expression."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}

        def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            """Tell a comma from CROSS JOIN: to Spark they are different kinds of join."""
            is_comma = self._curr is not None and self._curr.token_type == TokenType.COMMA
            join = super()._parse_join(*args, **kwargs)
            if is_comma and join is not None:
                join.set("kind", None)
            return join

    class Generator(Spark.Generator):
        """Writes columns as they are, or with one name in place of their source."""

        #: Written in front of columns in place of their source; empty for no source.
        qualifier: str | None = None

        def column_parts(self, expression: exp.Column) -> str:
            """Return the name of a column with the name of its source."""
            if self.qualifier is None or not expression.args.get("table"):
                return str(super().column_parts(expression))
            name = self.sql(expression, "this")
            return f"{self.qualifier}.{name}" if self.qualifier else name


class QuotedIdentifiers(VerbatimSpark):
    """The same where double quotes enclose names, not texts."""

    class Tokenizer(VerbatimSpark.Tokenizer):
        """Reads `spark.sql.ansi.doubleQuotedIdentifiers`."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']


#: Arguments of `Expression.sql` that write an expression as Spark SQL.
SPARK: dict[str, Any] = {"dialect": VerbatimSpark, "normalize_functions": False}

_OPTIONS = {"normalize_functions": False, "comments": False}
_of_thread = threading.local()


@functools.cache
def dialect(double_quoted_identifiers: bool) -> Dialect:
    """Return the dialect in which a session writes its queries."""
    return QuotedIdentifiers() if double_quoted_identifiers else VerbatimSpark()


def to_sql(node: exp.Expression, qualifier: str | None = None) -> str:
    """Return an expression as Spark SQL.

    Unlike `Expression.sql`, this neither copies the expression nor looks for WITH in it.

    Parameters
    ----------
    node
        An expression; not a SELECT, which sqlglot may change while it writes it.
    qualifier
        Written in front of columns in place of their source; empty for no source.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> to_sql(parse_one("l.lux > 3")), to_sql(parse_one("l.lux > 3"), "`x`")
    ('l.lux > 3', '`x`.lux > 3')

    """
    generator = getattr(_of_thread, "generator", None)
    if generator is None:
        generator = _of_thread.generator = VerbatimSpark().generator(**_OPTIONS)
    generator.qualifier = qualifier
    return str(generator.sql(node))


def quoted(name: str) -> str:
    """Return a name as it is written in SQL.

    Examples
    --------
    >>> print(quoted("we`ird"))
    `we``ird`

    """
    doubled = name.replace("`", "``")
    return f"`{doubled}`"
