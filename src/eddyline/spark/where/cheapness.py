"""Whether predicates are too cheap for further columns to cross into Python.

A column that might classify rows costs each row some 10 to 150 ns on its way to Python, whether or
not classes are found. A plan cannot be changed while it runs, so this is decided before: by what
predicates were measured to cost in an earlier run, or else by their code (docs/decisions/0026).
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from eddyline.fabric.knowledge import Knowledge
from eddyline.spark.common.predicates import Predicate, PythonPredicate

CHEAP_US = 4.0  # a row, all predicates together: six columns would cost a tenth of it
CALLS_DEEP = 3


def why_too_cheap(predicates: Sequence[Predicate], knowledge: Sequence[Knowledge]) -> str | None:
    """Return why no further column should cross for these predicates; None if some should."""
    if knowledge:
        cost_us = sum(us or 0.0 for part in knowledge for us in part.cost_us)
        if cost_us >= CHEAP_US:
            return None
        return f"all predicates together take {cost_us:.1f} us a row"
    if any(
        isinstance(predicate, PythonPredicate)
        and predicate.kind == "row"
        and looks_costly(predicate.function)
        for predicate in predicates
    ):
        return None
    return "it is not known yet whether the predicates cost enough"


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
    used = inspect.getclosurevars(function)
    return any(
        looks_costly(value, calls_deep - 1)
        if isinstance(value, FunctionType)
        else _is_foreign(value)
        for value in (*used.globals.values(), *used.nonlocals.values())
        if calls_deep > 0
    )


def _is_foreign(value: Any) -> bool:
    """Whether a value, or its class, does not come with Python; of a method, the object's."""
    owner = getattr(value, "__self__", None)
    value = value if owner is None else owner
    named = value if isinstance(value, ModuleType | type) else type(value)
    module = named.__name__ if isinstance(named, ModuleType) else named.__module__
    return module.partition(".")[0] not in sys.stdlib_module_names
