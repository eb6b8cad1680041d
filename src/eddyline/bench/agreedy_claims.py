"""Which method the A-Greedy paper found better than which, compared with what was measured.

Compared are means over runs. Why some pairs are the other way round is in `docs/decisions/0035`.

References
----------
Babu et al., Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004, sections 9.2 to 9.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eddyline.bench.harness import Bench

#: Two values that differ by less are equal.
EQUAL_WITHIN = 0.002

#: A method that the paper found better, and one that it found worse.
Pair = tuple[str, str]

FIG_9: Sequence[Pair] = (("A-Greedy", "Independent"),)
FIG_12: Sequence[Pair] = (("Sweep", "A-Greedy"), ("LocalSwaps", "A-Greedy"))
FIG_14: Sequence[Pair] = FIG_12
#: Where half of the filters are 50 or 100 times as expensive, LocalSwaps misses the best order.
FIG_14_EXPENSIVE: Sequence[Pair] = (*FIG_12, ("Sweep", "LocalSwaps"))
#: In figure 15, besides, LocalSwaps has a slightly lower overhead than Sweep.
FIG_15: Sequence[Pair] = (*FIG_12, ("LocalSwaps", "Sweep"))
FIGS_16_TO_18: Sequence[Pair] = (("A-Greedy", "Sweep"), ("A-Greedy", "LocalSwaps"))
FIG_19_FAST: Sequence[Pair] = (("A-Greedy", "Sweep"), ("Independent", "Sweep"))
FIG_19_SLOW: Sequence[Pair] = (("Sweep", "A-Greedy"),)


def compare(
    bench: Bench, label: str, values: Mapping[str, float], pairs: Sequence[Pair]
) -> list[Pair]:
    """Note how many pairs are in the paper's order, and name those that are not.

    Parameters
    ----------
    bench, label
        Where the result goes, and what it is called.
    values
        Of each method; the smaller, the better.
    pairs
        The paper's order. Values within 0.2 % are in nobody's order: they are named as equal.

    Returns
    -------
    The pairs that are the other way round.

    """
    reversed_pairs: list[Pair] = []
    remarks: list[str] = []
    as_in_paper = 0
    for better, worse in pairs:
        numbers = f"{better} {values[better]:,.3f}, {worse} {values[worse]:,.3f}"
        if abs(values[better] - values[worse]) <= EQUAL_WITHIN * abs(values[worse]):
            remarks.append(f"equal: {numbers}")
        elif values[better] > values[worse]:
            reversed_pairs.append((better, worse))
            remarks.append(f"differs from the paper: {numbers}")
        else:
            as_in_paper += 1
    bench.add(
        f"{label}: pairs of methods in the paper's order",
        as_in_paper,
        f"of {len(pairs)}",
        "; ".join(remarks) or None,
        "; ".join(f"{better} better than {worse}" for better, worse in pairs),
    )
    return reversed_pairs
