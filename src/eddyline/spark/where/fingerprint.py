"""A short text that changes when a function does, the same in every process."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import types
from collections.abc import Callable
from typing import Any

DEPTH_MAX = 6
ITEMS_MAX = 10_000  # of a larger collection only the size counts
SCALARS = (bool, int, float, complex, str, bytes, type(None))


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a text that changes when a function does.

    Looked at are its code, its default arguments, the values it closes over, the arguments of a
    `functools.partial`, the function that a decorator wraps, and the object of a bound method.
    Global functions that it calls are not. Of objects of other classes only the class counts,
    unless it is a data class: their values may differ in every process.

    Examples
    --------
    >>> fingerprint(lambda a: a > 1) == fingerprint(lambda a: a > 1)
    True
    >>> fingerprint(lambda a: a > 1) == fingerprint(lambda a: a > 2)
    False
    >>> def above(limit):
    ...     return lambda a: a > limit
    >>> fingerprint(above(1)) == fingerprint(above(2))
    False

    """
    return hashlib.sha256(repr(_plain(function, DEPTH_MAX)).encode()).hexdigest()[:16]


def _plain(value: Any, depth: int) -> Any:
    """Return nested tuples of texts that stand for a value."""
    if isinstance(value, SCALARS):
        return repr(value)
    if depth == 0:
        return _name_of(type(value))
    inner = functools.partial(_plain, depth=depth - 1)
    if isinstance(value, functools.partial):
        return ("partial", inner(value.func), inner(value.args), inner(value.keywords))
    if isinstance(value, types.MethodType):
        return ("method", inner(value.__func__), inner(value.__self__))
    if isinstance(value, types.FunctionType):
        return ("function", *(inner(part) for part in _parts_of(value)))
    if isinstance(value, types.CodeType):
        return (value.co_code, value.co_names, inner(value.co_consts))
    if isinstance(value, re.Pattern):
        return ("pattern", repr(value.pattern), value.flags)
    if isinstance(value, list | tuple | set | frozenset | dict):
        return (type(value).__name__, *_items_of(value, inner))
    if hasattr(value, "__qualname__"):  # a class, or a function that is built in
        return _name_of(value)
    if hasattr(type(value), "__dataclass_fields__"):
        return (_name_of(type(value)), inner(vars(value)) if hasattr(value, "__dict__") else "")
    call = inspect.getattr_static(type(value), "__call__", None)
    return (_name_of(type(value)), inner(call) if isinstance(call, types.FunctionType) else "")


def _items_of(
    value: list[Any] | tuple[Any, ...] | set[Any] | frozenset[Any] | dict[Any, Any],
    inner: Callable[[Any], Any],
) -> tuple[Any, ...]:
    """Return what stands for the items of a collection; a set has no order."""
    if len(value) > ITEMS_MAX:
        return (len(value),)
    if isinstance(value, dict):
        return tuple((inner(key), inner(each)) for key, each in value.items())
    items = tuple(map(inner, value))
    return tuple(sorted(map(repr, items))) if isinstance(value, set | frozenset) else items


def _parts_of(function: types.FunctionType) -> tuple[Any, ...]:
    """Return what a function is made of, apart from its name."""
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            cells.append(None)
    values = [value for value in cells if value is not function]  # it may call itself
    return function.__code__, function.__defaults__, function.__kwdefaults__, tuple(values)


def _name_of(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{value.__qualname__}"
