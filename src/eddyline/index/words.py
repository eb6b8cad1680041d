"""Access patterns and configurations in words."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.index.configuration import Configuration
from eddyline.index.index import Pattern


def pattern_in_words(pattern: Pattern, names: Sequence[str] = ()) -> str:
    """Return an access pattern in words.

    Examples
    --------
    >>> pattern_in_words((0, 2)), pattern_in_words((1,), ["room", "floor"])
    ('#1, #3', 'floor')

    """
    words = [names[column] if names else f"#{column + 1}" for column in pattern]
    return ", ".join(words) or "no column"


def bits_in_words(configuration: Configuration, names: Sequence[str] = ()) -> str:
    """Return a configuration in words: the columns with their bits, high ones first.

    Examples
    --------
    >>> bits_in_words(Configuration((2, 0, 5), (2, 0, 1)), ["room", "floor", "mote"])
    'mote:5 room:2'

    """
    bits = configuration.bits
    words = [f"{pattern_in_words((c,), names)}:{bits[c]}" for c in configuration.order if bits[c]]
    return " ".join(words) or "no bits"
