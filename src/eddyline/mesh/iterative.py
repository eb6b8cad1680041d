"""II-QM: iterative improvement, downhill from several starts.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 4.7, figure 6.
"""

from __future__ import annotations

import numpy as np

from eddyline.mesh.cost import MeshProblem, Solution
from eddyline.mesh.neighbours import random_neighbour
from eddyline.mesh.starts import Start, random_partition
from eddyline.mesh.stop import Stop


def iterative_improvement(
    problem: MeshProblem, start: Start, stop: Stop, rng: np.random.Generator
) -> Solution:
    """Take random downhill moves to a local minimum, again and again; return the best.

    The first descent begins at the start solution, the others at random partitions. A local minimum
    is where as many moves in a row as four times the training tuples lead nowhere.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from eddyline.mesh.starts import STARTS
    >>> from eddyline.mesh.training import TrainingSet
    >>> drops = np.array([[True, False], [False, True]] * 20)
    >>> training = TrainingSet({"kind": pa.array(["a", "b"] * 20)}, drops, [10.0, 10.0])
    >>> problem = MeshProblem(training, [np.arange(0, 40, 2), np.arange(1, 40, 2)])
    >>> rng, start = np.random.default_rng(0), STARTS["extreme-1"]
    >>> found = iterative_improvement(problem, start, Stop(2, 2), rng)
    >>> found.partition, found.routes
    ((0, 1), ((0, 1), (1, 0)))

    """
    best = problem.evaluate(start(problem, rng))
    failures_max = 4 * len(problem.tuples)
    current = best
    while not stop.is_met:
        failures = 0
        while failures < failures_max and not stop.is_out_of_time:
            failures += 1
            move = random_neighbour(current.partition, rng)
            if problem.bound_us(move) >= current.cost_us:
                continue  # no need to grow its classifier
            neighbour = problem.evaluate(move)
            if neighbour.cost_us < current.cost_us - 1e-12:
                current, failures = neighbour, 0
        if current.cost_us < best.cost_us:
            best = current
        stop.count(best.cost_us)
        current = problem.evaluate(random_partition(len(problem.tuples), rng))
    return best
