"""Where the bits of a clause are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eddyline.arrays import IntArray

#: Words of a bitmap: an array of their numbers, or a slice where they are evenly spaced.
Words = IntArray | slice


class BitWords(NamedTuple):
    """Words of the bitmaps of an eddy.

    Parameters
    ----------
    queries
        Of queries.
    mixed
        Of clauses with predicates.
    singles
        Of other clauses with alternatives on single columns.
    terms
        Of terms.

    """

    queries: int = 1
    mixed: int = 0
    singles: int = 0
    terms: int = 0


class ClauseBits(NamedTuple):
    """The bits of one clause.

    Parameters
    ----------
    query
        The bit of its query.
    single
        Set where an alternative holds that is one column's values or a predicate; -1 if the clause
        has terms only. Bits of clauses with predicates are counted apart from the others.
    terms
        One bit for each term.
    operators
        Names of the operators that it needs.
    has_predicates
        Whether an alternative is a predicate.

    """

    query: int
    single: int
    terms: tuple[int, ...]
    operators: frozenset[str]
    has_predicates: bool = False


def compact(words: IntArray) -> Words:
    """Return evenly spaced words as a slice, which is read without a copy."""
    steps = np.diff(words)
    step = int(steps[0]) if len(steps) else 1
    if step < 1 or (steps != step).any():
        return words
    return slice(int(words[0]), int(words[-1]) + 1, step)
