"""Functions of Spark that fail on no row, with the arguments for which that holds.

One letter stands for one argument:

- `s` text, or what Spark makes text of; `c` constant text; `y` text or binary
- `i` a whole number that is an int or smaller; `k` such a constant, of moderate size
- `n` a number that is no decimal; `f` a floating number; `t` a date or timestamp; `b` a boolean
- `a` anything
- `l` text or an array of texts; `=` like the other arguments with `=`: of one type, or of types
  that Spark converts without fail

A `*` repeats the last letter. The result is a type, or `=` for the common type of those arguments.
"""

from __future__ import annotations

from collections.abc import Mapping

Signatures = tuple[tuple[str, ...], str]


def _same(names: str, signatures: str, result: str) -> dict[str, Signatures]:
    return {name: (tuple(signatures.split()), result) for name in names.split()}


SAFE_FUNCTIONS: Mapping[str, Signatures] = {
    **_same("length char_length character_length len octet_length bit_length", "y", "int"),
    **_same("lower upper lcase ucase initcap soundex", "s", "string"),
    **_same("trim ltrim rtrim btrim", "s ss", "string"),
    **_same("reverse", "s", "string"),
    **_same("ascii", "s", "int"),
    **_same("substring substr", "si sii", "string"),
    **_same("left right", "si", "string"),
    **_same("repeat", "sk", "string"),  # a length from a column could exhaust the memory
    **_same("lpad rpad", "sk sks", "string"),
    **_same("instr", "ss", "int"),
    **_same("locate position", "ss ssi", "int"),
    **_same("levenshtein", "ss ssi", "int"),
    **_same("concat", "s*", "string"),
    **_same("concat_ws", "sl*", "string"),
    **_same("replace", "ss sss", "string"),
    **_same("translate", "sss", "string"),
    **_same("startswith endswith contains", "ss", "boolean"),
    **_same("rlike regexp regexp_like like ilike", "sc", "boolean"),
    **_same("regexp_count", "sc", "int"),
    **_same("regexp_instr", "sc sci", "int"),
    **_same("regexp_substr", "sc", "string"),
    # Whether these two fail depends on the pattern's groups, too: see `failures`.
    **_same("regexp_extract", "sc sci", "string"),
    **_same("regexp_replace", "scc scck", "string"),
    **_same("split", "sc sci", "array<string>"),
    **_same("get_json_object", "sc", "string"),
    **_same("json_array_length", "s", "int"),
    **_same("md5 sha sha1", "y", "string"),
    **_same("sha2", "yi", "string"),
    **_same("crc32", "y", "bigint"),
    **_same("hash", "a*", "int"),
    **_same("xxhash64", "a*", "bigint"),
    **_same("base64", "y", "string"),
    **_same("isnull isnotnull", "a", "boolean"),
    **_same("array_contains", "aa", "boolean"),
    **_same("date_trunc", "ct", "timestamp"),
    **_same("isnan", "n", "boolean"),
    **_same("size cardinality array_size", "a", "int"),
    **_same("coalesce nvl ifnull nullif greatest least", "=*", "="),
    **_same("between", "===", "boolean"),
    **_same("equal_null", "==", "boolean"),
    **_same("if", "b==", "="),
    **_same("nvl2", "a==", "="),
    **_same("not", "b", "boolean"),
    **_same("abs", "f", "double"),
    **_same("sqrt cbrt exp ln log10 log2 sin cos tan atan radians degrees sign", "n", "double"),
    **_same("power pow", "nn", "double"),
    **_same("round bround", "f fi", "double"),
    **_same("year month day dayofmonth dayofyear dayofweek weekday weekofyear quarter", "t", "int"),
    **_same("hour minute second", "t", "int"),
    **_same("datediff date_diff", "tt", "int"),
    **_same("current_date curdate", "-", "date"),
    **_same("current_timestamp now", "-", "timestamp"),
    **_same("try_add try_subtract try_multiply try_mod", "nn", "="),
    **_same("try_divide", "nn", "double"),
    **_same("try_to_timestamp", "s", "timestamp"),
}
