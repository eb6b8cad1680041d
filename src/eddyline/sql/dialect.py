"""Spark SQL as sqlglot reads it, with function calls kept as they are written.

sqlglot parses many functions into classes of its own and writes some of them differently, with
results that can differ in the last digit (`docs/decisions/0012`). A continuous query needs only
the structure of the SQL; Spark evaluates the functions.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot.dialects.spark import Spark


class VerbatimSpark(Spark):
    """The Spark dialect without sqlglot's knowledge of functions."""

    class Tokenizer(Spark.Tokenizer):
        """Accepts a doubled quote inside a string literal."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(Spark.Parser):
        """Reads every function call as an `Anonymous` expression."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}


#: Arguments of `Expression.sql` that write an expression as Spark SQL.
SPARK: dict[str, Any] = {"dialect": VerbatimSpark, "normalize_functions": False}
