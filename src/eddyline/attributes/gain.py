"""How much an attribute tells about a filter: entropy, information gain, gain ratio.

Counts come as two arrays of one shape: rows that went *in* to a filter and rows that came *out* of
it, by partition of an attribute. The last axis is the partition, so that all attributes are scored
in one call.

References
----------
Bizarro et al., Content-Based Routing: Different Plans for Different Data, VLDB 2005, section 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eddyline.arrays import FloatArray


def entropy(selectivity: ArrayLike) -> Any:
    """Return the bits in knowing whether a row passes (equation 2).

    Examples
    --------
    >>> float(entropy(0.5)), float(entropy(0.0))
    (1.0, 0.0)
    >>> round(float(entropy(0.4)), 4)
    0.971

    """
    share = np.asarray(selectivity, dtype=float)
    return _bits(share) + _bits(1.0 - share)


def information_gain(rows_in: ArrayLike, rows_out: ArrayLike) -> Any:
    """Return the bits that the partition of a row tells about its fate (equation 3).

    Examples
    --------
    >>> float(information_gain([50, 50], [50, 0]))  # the partition says everything
    1.0
    >>> float(information_gain([50, 50], [25, 25]))  # and here nothing
    0.0

    """
    into = np.asarray(rows_in, dtype=float)
    out = np.asarray(rows_out, dtype=float)
    rows = into.sum(axis=-1)
    whole = entropy(_divide(out.sum(axis=-1), rows))
    parts = entropy(_divide(out, into))
    return whole - (_divide(into, rows[..., None]) * parts).sum(axis=-1)


def split_information(rows_in: ArrayLike) -> Any:
    """Return the bits in the partition itself (equation 4).

    Examples
    --------
    >>> float(split_information([10, 10, 10, 10]))
    2.0

    """
    into = np.asarray(rows_in, dtype=float)
    return _bits(_divide(into, into.sum(axis=-1)[..., None])).sum(axis=-1)


def gain_ratio(rows_in: ArrayLike, rows_out: ArrayLike) -> Any:
    """Return information gain by split information (equation 5); 0 where all rows are alike.

    Examples
    --------
    Example 3.1 of the paper, its second filter, a hundred rows of each of the values a, b, c:

    >>> round(float(gain_ratio([100, 100, 100], [10, 20, 90])), 4)
    0.2635

    """
    return _divide(information_gain(rows_in, rows_out), split_information(rows_in))


def chance_gain(rows_in: ArrayLike, deviations: float = 0.0) -> Any:
    """Return the information gain to expect of an attribute that tells nothing.

    A small sample in many partitions looks informative by chance alone: with r rows in d
    partitions by x / (2 r ln 2) bits, where x has a chi-squared distribution with d - 1 degrees of
    freedom. A gain that exceeds its mean by several standard deviations is not chance.

    Parameters
    ----------
    rows_in
        Rows by partition.
    deviations
        Standard deviations to add to the mean.

    Examples
    --------
    >>> round(float(chance_gain([10] * 15)), 4)
    0.0673

    """
    into = np.asarray(rows_in, dtype=float)
    used = np.count_nonzero(into, axis=-1)
    freedom = np.maximum(used - 1, 0)
    likely = freedom + deviations * np.sqrt(2.0 * freedom)
    return _divide(likely, 2.0 * into.sum(axis=-1) * np.log(2.0))


def _bits(share: FloatArray) -> FloatArray:
    positive = np.where(share > 0, share, 1.0)
    return np.asarray(share * -np.log2(positive) + 0.0)


def _divide(numerator: ArrayLike, denominator: ArrayLike) -> FloatArray:
    """Divide, with 0 where the denominator is 0."""
    above, below = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    shape = np.broadcast_shapes(above.shape, below.shape)
    quotient: FloatArray = np.divide(above, below, out=np.zeros(shape), where=below != 0)
    return quotient
