"""Base of all events: its fields, whether it changes routes, and its sentence.

An event holds plain values only, so that it can travel as JSON from a worker to the driver and be
kept on disk. Reports, the dashboard and tests read the class and its fields, never a string.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Names = tuple[str, ...]
Verdict = Literal["kept", "reverted", "interrupted"]

_CLASSES: dict[str, type[Event]] = {}
NAME_CHARACTERS_MAX = 40  # of an operator's name in a sentence; fields have the whole name


@dataclass(frozen=True, kw_only=True)
class Event(abc.ABC):
    """Base of all events. A subclass is registered by its name and declares its fields."""

    _changes_routes: ClassVar[bool] = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _CLASSES[cls.__name__] = cls

    @property
    def kind(self) -> str:
        """Name of the class."""
        return type(self).__name__

    @property
    def changes_routes(self) -> bool:
        """Whether rows may take other routes after this event than before it."""
        return self._changes_routes

    @abc.abstractmethod
    def sentence(self) -> str:
        """Return the event as one line for people."""

    def fields(self) -> dict[str, Any]:
        """Return the values of all fields, by name."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON, with the name of the class."""
        plain = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self.fields().items()
        }
        return {"kind": self.kind, **plain}


def event_from_dict(plain: Mapping[str, Any]) -> Event:
    """Read what `Event.to_dict` wrote.

    Examples
    --------
    >>> from eddyline.journal.events import DefaultRouteChanged
    >>> event = DefaultRouteChanged(before=("a", "b"), after=("b", "a"))
    >>> event_from_dict(event.to_dict()) == event
    True

    """
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in plain.items()}
    return _CLASSES[str(values.pop("kind"))](**values)


def event_classes() -> list[type[Event]]:
    """Return every class of event that can be written."""
    return [cls for cls in _CLASSES.values() if not getattr(cls, "__abstractmethods__", None)]


def route_words(names: Names) -> str:
    """Return a route in words.

    Examples
    --------
    >>> route_words(("a", "b"))
    'a → b'

    """
    return " → ".join(
        name if len(name) <= NAME_CHARACTERS_MAX else f"{name[: NAME_CHARACTERS_MAX - 1]}…"
        for name in names
    )
