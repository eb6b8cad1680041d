"""Which native conditions could fail on some row, and therefore must keep their written place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from eddyline.spark.common.predicates import NativePredicate, without_literals
from eddyline.spark.native.condition_tree import (
    analysed_condition,
    analysed_tree,
    calls_foreign_code,
    column_types,
    is_ansi,
    written_tree,
)
from eddyline.sql.failures import failure_reason

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
    """Whether a native condition could fail on some row."""
    return why_it_may_fail(df, predicate) is not None


def why_it_may_fail(df: DataFrame, predicate: NativePredicate) -> str | None:
    """Return why a native condition could fail on some row; None if it cannot.

    Such a condition keeps its written place, because one written before it may protect it
    (docs/decisions/0024). The condition is judged as it is written, and in a classic session also
    with the casts that Spark adds.
    """
    if predicate.may_fail is not None:
        return "may_fail=True" if predicate.may_fail else None
    analysed = analysed_condition(df, predicate)
    tree = written_tree(df, predicate, analysed)
    if tree is None:
        return "it cannot be read"
    if calls_foreign_code(analysed):
        return "it calls a user-defined function"
    types, ansi = column_types(df.schema), is_ansi(df)
    reason = failure_reason(tree, types, ansi)
    if reason is None and isinstance(predicate.condition, str):
        with_casts = analysed_tree(analysed)
        reason = None if with_casts is None else failure_reason(with_casts, types, ansi)
    return reason


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
