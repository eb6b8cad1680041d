"""SA-QM: simulated annealing, uphill too while the temperature is high.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, section 4.7, figure 7.
"""

from __future__ import annotations

import math

import numpy as np

from eddyline.mesh.cost import MeshProblem, Solution
from eddyline.mesh.neighbours import random_neighbour
from eddyline.mesh.starts import Start
from eddyline.mesh.stop import Stop

START_SHARE = 0.1  # of the start solution's cost: the first temperature
COOLING = 0.8


def simulated_annealing(
    problem: MeshProblem, start: Start, stop: Stop, rng: np.random.Generator
) -> Solution:
    """Walk at random, accepting a worse neighbour ever less often; return the best met.

    An iteration of the stop condition is one temperature, at which as many moves are made as twice
    the training tuples. The search is frozen when the temperature has no effect any more.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from eddyline.mesh.starts import STARTS
    >>> from eddyline.mesh.training import TrainingSet
    >>> drops = np.array([[True, False], [False, True]] * 20)
    >>> training = TrainingSet({"kind": pa.array(["a", "b"] * 20)}, drops, [10.0, 10.0])
    >>> problem = MeshProblem(training, [np.arange(0, 40, 2), np.arange(1, 40, 2)])
    >>> rng, start = np.random.default_rng(0), STARTS["extreme-1"]
    >>> found = simulated_annealing(problem, start, Stop(9, 9), rng)
    >>> found.partition, found.routes
    ((0, 1), ((0, 1), (1, 0)))

    """
    best = current = problem.evaluate(start(problem, rng))
    temperature_us = START_SHARE * max(best.cost_us, 1e-9)
    frozen_us = 1e-4 * temperature_us
    while not stop.is_met and temperature_us > frozen_us:
        for _ in range(2 * len(problem.tuples)):
            if stop.is_out_of_time:
                break
            neighbour = problem.evaluate(random_neighbour(current.partition, rng))
            worse_us = neighbour.cost_us - current.cost_us
            if worse_us <= 0 or rng.random() < math.exp(-worse_us / temperature_us):
                current = neighbour
            if current.cost_us < best.cost_us:
                best = current
        temperature_us *= COOLING
        stop.count(best.cost_us)
    return best
