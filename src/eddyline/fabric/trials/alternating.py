"""Alternating: first without the change, then with it for as many rows.

References
----------
Bizarro et al., Content-Based Routing: Different Plans for Different Data, VLDB 2005, section 4.1
(benefit check).
"""

from __future__ import annotations

from typing import ClassVar, Literal

from eddyline.fabric.trials.trial import AFTER, BEFORE, Trial

WORSE_MAX = 1.005


class AlternatingTrial(Trial):
    """Compares routing without and with a classifier attribute, one after the other.

    Rows before the change are counted while the attribute is still being profiled; when it is put
    to use, as many rows are counted with it.

    Examples
    --------
    >>> import numpy as np
    >>> trial = AlternatingTrial(("calm",), ("calm by site",), predicates=2)
    >>> trial.add(BEFORE, 1_000, np.array([1_000, 500]))
    >>> trial.add(AFTER, 1_000, np.array([800, 400]))
    >>> trial.is_over, trial.verdict(np.ones(2))
    (True, 'kept')

    """

    subject: ClassVar[Literal["attribute"]] = "attribute"
    method: ClassVar[Literal["alternating"]] = "alternating"
    worse_max = WORSE_MAX

    @property
    def is_over(self) -> bool:
        """Whether as many rows were counted with the change as without it."""
        return self.rows[AFTER] >= self.rows[BEFORE]
