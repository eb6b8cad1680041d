"""Whether predicates are too cheap for further columns to cross into Python.

A column that might classify rows costs each row some 10 to 150 ns on its way to Python, whether or
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
from types import CodeType, FunctionType, ModuleType
from typing import Any

from eddyline.fabric.knowledge import Knowledge
from eddyline.spark.common.predicates import Predicate, PythonPredicate

CHEAP_US = 4.0  # a row, all predicates together: six columns would cost a tenth of it
PATTERN_US = 0.7  # a regular expression on a short text; on a long one it takes much longer
#: What a column that is not a text costs on its way, and a text, of which only short ones cross.
NUMBER_US, TEXT_US = 0.01, 0.12
COLUMNS_SHARE = 0.1  # of what predicates are expected to cost, for columns that may classify rows
CALLS_DEEP = 3


def columns_that_pay(
    is_text: Mapping[str, bool], predicates: Sequence[Predicate], knowledge: Sequence[Knowledge]
) -> tuple[set[str], str]:
    """Return the columns that may cross, and why the others do not.

    Parameters
    ----------
    is_text
        The columns that could classify rows: whether a column is a text.
    predicates, knowledge
        The predicates, and what is known of them from earlier runs.

    """
    functions = [
        predicate.function
        for predicate in predicates
        if isinstance(predicate, PythonPredicate) and predicate.kind == "row"
    ]
    if knowledge:
        cost_us = sum(us or 0.0 for part in knowledge for us in part.cost_us)
        if cost_us < CHEAP_US:
            return set(), f"all predicates together take {cost_us:.1f} us a row"
        return set(is_text), ""
    if any(looks_costly(function) for function in functions):
        return set(is_text), ""
    left_us = COLUMNS_SHARE * PATTERN_US * sum(map(uses_patterns, functions))
    chosen = set()
    for name in sorted(is_text, key=lambda name: is_text[name]):
        left_us -= TEXT_US if is_text[name] else NUMBER_US
        if left_us >= 0:
            chosen.add(name)
    return chosen, "it is not known yet whether the predicates cost enough"


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
