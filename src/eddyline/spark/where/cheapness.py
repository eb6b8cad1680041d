"""Whether predicates are too cheap for further columns to cross into Python.

A column that might classify rows costs each row something on its way to Python, whether or
not classes are found. A plan cannot be changed while it runs, so this is decided before: by what
predicates were measured to cost in an earlier run, or else by their code (docs/decisions/0026).
"""

from __future__ import annotations

import dis
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from types import CodeType, FunctionType, ModuleType
from typing import Any

from eddyline.fabric.knowledge import Knowledge
from eddyline.spark.common.predicates import Predicate, PythonPredicate, SharedArgument

CHEAP_US = 4.0  # a row, all predicates together: six columns would cost a tenth of it
PATTERN_US = 0.7  # a regular expression on a short text; on a long one it takes much longer
#: What a column that is not a text costs on its way, and a text, of which only short ones cross.
NUMBER_US, TEXT_US = 0.01, 0.12
COLUMNS_SHARE = 0.1  # of what predicates are expected to cost, for columns that may classify rows
CALLS_DEEP = 3
#: What a predicate may use and still take less than a microsecond on any row.
CHEAP_BUILTINS = set("abs bool divmod float int isinstance len max min round".split())
CHEAP_METHODS = set("bit_length day endswith get is_integer month startswith year".split())
PLAIN_TYPES = (bool, int, float, str, bytes, frozenset, set, dict, date, Decimal, type(None))


def columns_that_pay(
    is_text: Mapping[str, bool],
    predicates: Sequence[Predicate],
    knowledge: Sequence[Knowledge],
    asked: bool = False,
) -> tuple[set[str], str]:
    """Return the columns that may cross, and why the others do not.

    Parameters
    ----------
    is_text
        The columns that could classify rows: whether a column is a text.
    predicates, knowledge
        The predicates, and what is known of them from earlier runs.
    asked
        Whether the policy asks for classes of rows. Then columns cross unless it is plain that
        they do not pay; otherwise only if it seems that they do.

    """
    functions = [function for predicate in predicates for function in _functions_of(predicate)]
    if knowledge:
        cost_us = sum(us or 0.0 for part in knowledge for us in part.cost_us)
        if cost_us < CHEAP_US:
            return set(), f"all predicates together take {cost_us:.1f} us a row"
        return set(is_text), ""
    if asked:
        if not all_look_cheap(predicates):
            return set(is_text), ""
        return set(), "their code shows that the predicates take less than a microsecond each"
    if any(looks_costly(function) for function in functions):
        return set(is_text), ""
    left_us = COLUMNS_SHARE * PATTERN_US * sum(map(uses_patterns, functions))
    chosen = set()
    for name in sorted(is_text, key=lambda name: is_text[name]):
        left_us -= TEXT_US if is_text[name] else NUMBER_US
        if left_us >= 0:
            chosen.add(name)
    return chosen, "it is not known yet whether the predicates cost enough"


def all_look_cheap(predicates: Sequence[Predicate]) -> bool:
    """Whether the code of all predicates shows that each takes less than a microsecond a row."""
    return all(
        isinstance(predicate, PythonPredicate)
        and predicate.kind == "row"
        and all(map(looks_cheap, _functions_of(predicate)))
        for predicate in predicates
    )


def _functions_of(predicate: Predicate) -> Iterator[Callable[..., Any]]:
    """Yield the functions that a predicate calls row by row; those of shared steps count."""
    if isinstance(predicate, PythonPredicate):
        if predicate.kind == "row":
            yield predicate.function
        yield from _shared_functions(predicate.columns)


def _shared_functions(columns: Sequence[object]) -> Iterator[Callable[..., Any]]:
    for column in columns:
        if isinstance(column, SharedArgument):
            yield column.function
            yield from _shared_functions(column.columns)


def looks_cheap(function: Callable[..., Any], calls_deep: int = CALLS_DEEP) -> bool:
    """Whether a function's code shows that it takes less than a microsecond.

    It compares and computes, with values that come with Python and functions like itself. What
    has a loop, uses a module or a regular expression, or calls a method that may read all of a
    text, is not known to be cheap; that does not mean that it is expensive (`looks_costly`).

    Examples
    --------
    >>> looks_cheap(lambda a, b: a % 3 == 0 and b > 1), looks_cheap(lambda text: len(text) > 200)
    (True, True)
    >>> import re
    >>> looks_cheap(lambda text: re.search("x+", text)), looks_cheap(lambda text: text.split())
    (False, False)

    """
    if not isinstance(function, FunctionType) or looks_costly(function, calls_deep):
        return False
    names = inspect.getclosurevars(function)
    if not set(names.builtins) <= CHEAP_BUILTINS or not names.unbound <= CHEAP_METHODS:
        return False
    return all(
        calls_deep > 0 and looks_cheap(value, calls_deep - 1)
        if isinstance(value, FunctionType)
        else isinstance(value, PLAIN_TYPES)
        for value in _used(function)
    )


def uses_patterns(function: Callable[..., Any], calls_deep: int = CALLS_DEEP) -> bool:
    """Whether a function's code uses regular expressions. Functions that it calls count.

    Examples
    --------
    >>> import re
    >>> pattern = re.compile("x+")
    >>> uses_patterns(lambda text: pattern.search(text)), uses_patterns(lambda text: len(text))
    (True, False)

    """
    if isinstance(function, functools.partial):
        return uses_patterns(function.func, calls_deep)
    if not isinstance(function, FunctionType):
        return isinstance(getattr(function, "__self__", None), re.Pattern)
    return any(
        value is re
        or isinstance(value, re.Pattern)
        or (isinstance(value, FunctionType) and calls_deep and uses_patterns(value, calls_deep - 1))
        for value in _used(function)
    )


def _used(function: FunctionType) -> Iterator[Any]:
    """Yield the values of the global and outer variables that a function uses."""
    used = inspect.getclosurevars(function)
    yield from used.globals.values()
    yield from used.nonlocals.values()


def looks_costly(function: Callable[..., Any], calls_deep: int = CALLS_DEEP) -> bool:
    """Whether a function's code shows that it may well take microseconds.

    It has a loop, or uses something that does not come with Python: a library, or an object of a
    class that is not built in, such as a model. Functions that it calls count.

    Examples
    --------
    >>> import re
    >>> looks_costly(lambda a: a % 3 == 0), looks_costly(lambda text: re.search("x+", text))
    (False, False)
    >>> looks_costly(lambda text: sum(c == "x" for c in text) > 3)
    True

    """
    if isinstance(function, functools.partial):
        return looks_costly(function.func, calls_deep)
    if not isinstance(function, FunctionType):
        return _is_foreign(function)
    code = function.__code__
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        return True
    if any("JUMP_BACKWARD" in instruction.opname for instruction in dis.get_instructions(code)):
        return True
    return any(
        looks_costly(value, calls_deep - 1)
        if isinstance(value, FunctionType)
        else _is_foreign(value)
        for value in _used(function)
        if calls_deep > 0
    )


def _is_foreign(value: Any) -> bool:
    """Whether a value, or its class, does not come with Python; of a method, the object's."""
    owner = getattr(value, "__self__", None)
    value = value if owner is None else owner
    named = value if isinstance(value, ModuleType | type) else type(value)
    module = named.__name__ if isinstance(named, ModuleType) else named.__module__
    return module.partition(".")[0] not in sys.stdlib_module_names
