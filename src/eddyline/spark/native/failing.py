"""Which native conditions could fail on some row, and therefore must keep their written place."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING

from eddyline.spark.common.predicates import NativePredicate, without_literals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HARMLESS = frozenset(
    "and or not in between is null like ilike rlike regexp case when then else end if coalesce nvl "
    "ifnull nullif isnull isnotnull isnan greatest least length char_length character_length "
    "octet_length lower upper lcase ucase trim ltrim rtrim btrim substring substr left right instr "
    "locate position concat concat_ws replace translate reverse repeat lpad rpad initcap ascii "
    "startswith endswith contains regexp_like regexp_count regexp_extract regexp_replace "
    "regexp_instr regexp_substr get_json_object md5 sha sha1 sha2 crc32 xxhash64 hash soundex "
    "levenshtein bit_length array_contains size".split()
)
_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\(")
_RISKY_OPERATOR = re.compile(r"[-+*/%\[\]]|::|\b(?:div|mod)\b", re.IGNORECASE)
_PATTERN_FROM_COLUMN = re.compile(
    r"\b(?:rlike|regexp)\s+[\w`]|\b(?:rlike|regexp_\w+)\s*\([^,()]*,\s*[\w`]", re.IGNORECASE
)
_CAST_TARGET = re.compile(r" as ([a-z]\w*)", re.IGNORECASE)


def may_raise(df: DataFrame, predicate: NativePredicate) -> bool:
    """Whether a native condition could fail on some row, as far as its text tells.

    Such a condition keeps its written place, because one written before it may protect it
    (docs/decisions/0008). Arithmetic can overflow and casts can fail, including those that Spark
    adds to make types fit. A function that is not known to be harmless counts as one that can
    fail. In the text of a Column a literal cannot be recognised; SQL text is read more exactly.
    """
    if text_may_raise(predicate.name):
        return True
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        df.filter(predicate.column()).explain(extended=True)
    analysed = printed.getvalue().split("== Optimized")[0].split("== Analyzed")[-1]
    filters = [line for line in analysed.splitlines() if line.lstrip("+- :").startswith("Filter")]
    return not filters or casts_may_raise(filters[0])


def text_may_raise(text: str) -> bool:
    """Whether an expression could fail on some row, without the casts that Spark adds to it.

    Examples
    --------
    >>> text_may_raise("length(a) > 1"), text_may_raise("a / b > 1")
    (False, True)

    """
    text = without_literals(text)
    return bool(
        _RISKY_OPERATOR.search(text)
        or _PATTERN_FROM_COLUMN.search(text)
        or any(name.lower() not in _HARMLESS for name in _CALL.findall(text))
    )


def casts_may_raise(plan: str) -> bool:
    """Whether a plan of Spark has a cast that could fail: any that is not to text.

    Examples
    --------
    >>> casts_may_raise("Filter (cast(a#1 as string) = b#2)")
    False

    """
    return bool({name.lower() for name in _CAST_TARGET.findall(plan)} - {"string", "binary"})
