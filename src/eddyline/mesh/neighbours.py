"""Moves in the lattice of partitions: merge two groups, split one, or move one training tuple."""

from __future__ import annotations

import numpy as np

from eddyline.mesh.cost import Partition


def random_neighbour(partition: Partition, rng: np.random.Generator) -> Partition:
    """Return a partition one move away.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> {random_neighbour((0, 0), rng) for _ in range(20)}
    {(0, 1)}

    """
    labels = np.array(partition)
    groups = np.unique(labels)
    sizes = np.array([np.count_nonzero(labels == group) for group in groups])
    moves = []
    if len(groups) > 1:
        moves += ["merge", "move"]
    if (sizes > 1).any():
        moves.append("split")
    if not moves:
        return partition
    move = moves[int(rng.integers(len(moves)))]
    if move == "merge":
        one, other = rng.choice(groups, 2, replace=False)
        labels[labels == other] = one
    elif move == "move":
        tuple_ = int(rng.integers(len(labels)))
        labels[tuple_] = rng.choice(groups[groups != labels[tuple_]])
    else:
        group = rng.choice(groups[sizes > 1])
        members = np.flatnonzero(labels == group)
        taken = int(rng.integers(1, len(members)))
        labels[rng.choice(members, taken, replace=False)] = labels.max() + 1
    return renumbered(labels.tolist())


def renumbered(labels: list[int]) -> Partition:
    """Return the partition with groups numbered as they appear.

    Examples
    --------
    >>> renumbered([7, 3, 7])
    (0, 1, 0)

    """
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(label, len(numbers)) for label in labels)
