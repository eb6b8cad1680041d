"""Routes, and the tokens that carry them: a stack of operators that a ruster still has to visit.

A route names every operator once. A step of it may be uncertain, `3|1`: either first, to be decided
on the way by a lottery that remembers how well each choice did.

References
----------
Nehme et al., Multi-route query processing and optimization, 2013, sections 5.2 and 5.4.
"""

from __future__ import annotations

import random

from eddyline.mesh.mesh import Route, Step

#: The operators of an uncertain step that are left to choose from.
Choices = tuple[int, ...]

UNSEEN = (1.0, 0.5)  # rows taken and dropped by an operator that was not drawn yet


class Wheel:
    """The lottery wheel of a class of rows: an operator that drops more per unit time wins more.

    All operators start with equal chances. What each has done to rows of the class, when it was
    drawn from the same choices, is kept as a fading sum, so that the wheel follows the data. An
    operator is drawn with the probability that it is the best, given what was seen (Thompson
    sampling), so draws become certain with evidence.

    What an operator did after another of the choices does not count: of rows that the other has
    left, a correlated one drops fewer, and whichever was drawn first would stay first.

    Parameters
    ----------
    operators
        Number of operators.
    seed
        For the draws.

    Examples
    --------
    >>> wheel = Wheel(operators=2, seed=0)
    >>> for _ in range(5):
    ...     wheel.feed_back((0, 1), 0, seen=100, dropped=90)
    ...     wheel.feed_back((0, 1), 1, seen=100, dropped=10)
    >>> [wheel.draw((0, 1)) for _ in range(100)].count(0) > 90
    True

    """

    _FADE = 0.9
    _FLOOR = 0.04  # share of draws at random, so that no operator is excluded permanently

    def __init__(self, operators: int, seed: int | None = None) -> None:
        self._rng = random.Random(seed)
        self._cost_us = [1.0] * operators
        # By choices and operator: rows that it took when it was drawn from them, and dropped.
        self._counts: dict[tuple[Choices, int], tuple[float, float]] = {}

    def draw(self, choices: Choices) -> int:
        """Return one of the operators by chance."""
        if self._rng.random() < self._FLOOR:
            return self._rng.choice(choices)
        return max(choices, key=lambda operator: self._sampled_rate(choices, operator))

    def _sampled_rate(self, choices: Choices, operator: int) -> float:
        """Return a random draw of the drop rate per unit time, given the rows seen so far."""
        seen, dropped = self._counts.get((choices, operator), UNSEEN)
        rate = dropped / seen
        error = (max(rate * (1 - rate), 1 / (4 * seen)) / seen) ** 0.5
        return self._rng.gauss(rate, error) / self._cost_us[operator]

    def feed_back(self, choices: Choices, operator: int, seen: int, dropped: int) -> None:
        """Tell the wheel what an operator did to rows it was drawn for, out of the choices."""
        old_seen, old_dropped = self._counts.get((choices, operator), UNSEEN)
        self._counts[choices, operator] = (
            self._FADE * old_seen + seen,
            self._FADE * old_dropped + dropped,
        )

    def set_cost(self, operator: int, cost_us: float) -> None:
        """Tell the wheel what an operator costs a row, wherever it stands."""
        self._cost_us[operator] = max(cost_us, 1e-4)


class RToken:
    """The operators that a ruster still has to visit, as a stack.

    Examples
    --------
    >>> token = RToken((2, 0, 1))
    >>> [token.pop() for _ in range(3)], bool(token)
    ([2, 0, 1], False)
    >>> uncertain = RToken((2, (3, 1), 0), Wheel(operators=4, seed=1))
    >>> sorted(uncertain.pop() for _ in range(4))
    [0, 1, 2, 3]

    """

    def __init__(self, route: Route, wheel: Wheel | None = None) -> None:
        self._stack: list[Step] = list(route[::-1])
        self._wheel = wheel
        self._drawn_from: dict[int, Choices] = {}

    def __bool__(self) -> bool:
        return bool(self._stack)

    @property
    def learns(self) -> bool:
        """Whether the route has a lottery wheel, which follows what the operators do."""
        return self._wheel is not None

    def pop(self) -> int:
        """Return the operator to visit next, and take it off."""
        top = self._stack.pop()
        if isinstance(top, int):
            return top
        if len(top) == 1:
            return top[0]
        assert self._wheel is not None, "an uncertain route needs a wheel"
        chosen = self._wheel.draw(top)
        self._drawn_from[chosen] = top
        self._stack.append(tuple(operator for operator in top if operator != chosen))
        return chosen

    def feed_back(self, operator: int, seen: int, dropped: int, cost_us: float) -> None:
        """Pass on what the operator did, if the route has a lottery wheel."""
        if self._wheel is None:
            return
        self._wheel.set_cost(operator, cost_us)
        choices = self._drawn_from.get(operator)
        if choices is not None:  # else its place was not drawn
            self._wheel.feed_back(choices, operator, seen, dropped)
