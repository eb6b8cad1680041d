"""What a continuous query asks of the rows of one source, taken apart into shareable pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eddyline.operators.value_set import ValueSet


@dataclass(frozen=True, slots=True)
class Clause:
    """Alternatives, of which one must hold: values of columns, or shared predicates.

    A clause without alternatives never holds.
    """

    accepts: Mapping[str, ValueSet] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StandingQuery:
    """A query over one source: everything named here must hold.

    Parameters
    ----------
    number
        Its own for ever, unlike the slot of its bit, which is given to another query afterwards.
    accepts
        For columns that are compared with constants, the values that will do.
    needs
        Predicates, by their keys, which other queries may need as well.
    clauses
        Alternatives that do not come down to the values of one column.
    is_stored
        Whether matching rows are wanted, or only their number.

    """

    number: int
    accepts: Mapping[str, ValueSet] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    clauses: tuple[Clause, ...] = ()
    is_stored: bool = True
