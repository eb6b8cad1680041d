"""Spark's SQL as sqlglot reads it, with calls of functions left as they are written.

sqlglot knows many functions and writes some of them in another way, which is not always the same
to the last digit. Here only the shape of a query matters; what a function does is Spark's business.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot.dialects.spark import Spark


class Verbatim(Spark):
    """Spark's dialect without sqlglot's knowledge of functions."""

    class Tokenizer(Spark.Tokenizer):
        """A quote within a text may be doubled."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(Spark.Parser):
        """Every call is just a call."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}


#: Arguments for sqlglot, to write an expression as Spark reads it.
SPARK: dict[str, Any] = {"dialect": Verbatim, "normalize_functions": False}
