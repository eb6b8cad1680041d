"""Values in which constants can be replaced: texts, formulas, and whatever is made of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from eddyline.spark.engine.query_shape import Constant
from eddyline.sql.formulas import Formula
from eddyline.sql.specs import PredicateSpec

#: Returns a value for other constants, and for their literals.
Filler = Callable[[Sequence[Constant], Sequence[Sequence[str]]], Any]


class Holes:
    """Finds constants in what was made of a query, where others can be put in their place.

    Parameters
    ----------
    constants
        Constants whose literals stand nowhere else in the query, by place.

    Examples
    --------
    >>> holes = Holes({0: Constant("whole", "70001", ("70001",))})
    >>> fill = holes.filler(("a > 70001", {"a": 1}))
    >>> fill([Constant("whole", "5", ("5",))], [("5",)])
    ('a > 5', {'a': 1})
    >>> print(holes.filler("a > 1"))
    None

    """

    def __init__(self, constants: Mapping[int, Constant]) -> None:
        #: How each constant is written: its place, and whether it is as the user wrote it.
        self._written: dict[str, tuple[int, bool]] = {}
        #: The constants as values, and their negatives: the place, and whether it is negated.
        self._values: dict[object, tuple[int, bool]] = {}
        for place, constant in constants.items():
            self._written[constant.written] = (place, True)
            self._written[constant.rendered] = (place, constant.rendered == constant.written)
            for literal in constant.literals:
                value = _value(constant, literal)
                self._values[value] = (place, False)
                if not isinstance(value, str):
                    self._values[-value] = (place, True)
        self._pattern = re.compile("|".join(map(re.escape, self._written)) or r"(?!)")
        self._constants = constants
        #: The place of each literal.
        self.literals = {text: place for place, own in constants.items() for text in own.literals}

    def places(self, text: str) -> set[int]:
        """Return the places of the constants that stand in a text."""
        return {
            place
            for place, constant in self._constants.items()
            if any(literal in text for literal in constant.literals)
        }

    def filler(self, value: Any) -> Filler | None:
        """Return how a value is made for other constants; None if it has none."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Formula):
            return lambda constants, literals: value.values(literals)
        if isinstance(value, tuple):
            return _sequence([self._part(item) for item in value])
        if isinstance(value, Mapping):
            keys = _sequence([self._part(key) for key in value])
            values = _sequence([self._part(each) for each in value.values()])
            if keys is None and values is None:
                return None
            return _mapping(keys or _always(tuple(value)), values or _always(tuple(value.values())))
        if isinstance(value, PredicateSpec):
            return self._object(value, constant=self._test_constant(value.constant))
        return self._object(value) if is_dataclass(value) else None

    def _part(self, value: Any) -> tuple[Any, Filler | None]:
        return value, self.filler(value)

    def _object(self, value: Any, **known: Filler | None) -> Filler | None:
        names = [each.name for each in fields(value)]
        parts = _sequence(
            [
                (own := getattr(value, name), known[name] if name in known else self.filler(own))
                for name in names
            ]
        )
        if parts is None:
            return None
        make = type(value)
        return lambda constants, literals: make(
            **dict(zip(names, parts(constants, literals), strict=True))
        )

    def _text(self, text: str) -> Filler | None:
        pieces, holes, copied_to = [], [], 0
        for found in self._pattern.finditer(text):
            pieces.append(text[copied_to : found.start()])
            holes.append(self._written[found[0]])
            copied_to = found.end()
        if not holes:
            return None
        last = text[copied_to:]

        def fill(constants: Sequence[Constant], literals: Sequence[Sequence[str]]) -> str:
            parts = []
            for piece, (place, is_as_written) in zip(pieces, holes, strict=True):
                own = constants[place]
                parts += [piece, own.written if is_as_written else own.rendered]
            return "".join([*parts, last])

        return fill

    def _test_constant(self, constant: Any) -> Filler | None:
        """Return how the constant is made that the answer of a function is compared with."""
        items = constant if isinstance(constant, tuple) else (constant,)
        found = [self._values.get(item) for item in items]
        if not any(found):
            return None
        # The literals of a list stand side by side.
        parts = [
            (item, hole)
            for item, hole, before in zip(items, found, [None, *found], strict=False)
            if hole is None or hole != before
        ]

        def fill(constants: Sequence[Constant], literals: Sequence[Sequence[str]]) -> Any:
            made: list[Any] = []
            for item, hole in parts:
                if hole is None:
                    made.append(item)
                    continue
                place, is_negated = hole
                values = [_value(constants[place], literal) for literal in literals[place]]
                made += [-value for value in values] if is_negated else values
            return tuple(made) if isinstance(constant, tuple) else made[0]

        return fill


def _value(constant: Constant, literal: str) -> Any:
    """Return a literal as the constant that the answer of a function is compared with."""
    if constant.kind.endswith("whole"):
        return int(literal)
    return Decimal(literal) if constant.kind.endswith("decimal") else literal


def _always(value: Any) -> Filler:
    return lambda constants, literals: value


def _sequence(parts: Sequence[tuple[Any, Filler | None]]) -> Filler | None:
    """Return how a tuple is made; None if no part of it has a constant."""
    if all(filler is None for _, filler in parts):
        return None
    return lambda constants, literals: tuple(
        [value if filler is None else filler(constants, literals) for value, filler in parts]
    )


def _mapping(keys: Filler, values: Filler) -> Filler:
    return lambda constants, literals: dict(
        zip(keys(constants, literals), values(constants, literals), strict=True)
    )
