"""Iterator functions (batches in, batches out) called one batch at a time.

PySpark's iterator UDFs are generators over all batches of a task, so that they can load a model
once. The router has to ask about one batch at a time, and about fewer rows than the batch has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class PerBatch:
    """Keeps one generator running and feeds it batch by batch.

    The generator answers a batch with as many pieces as it likes. If it asks for the next batch
    before it has answered this one in full (it looks ahead), it is told that there is none, so it
    finishes what it has; for the next batch it is started again.

    Parameters
    ----------
    function
        Takes an iterator of argument tuples (of bare arguments if there is only one), returns
        an iterator of answers.
    concat
        Joins the pieces of an answer.

    Examples
    --------
    >>> def above(batches):
    ...     limit = 2  # stands for something expensive to load
    ...     for batch in batches:
    ...         yield [value > limit for value in batch]
    >>> call = PerBatch(above, concat=lambda pieces: sum(pieces, []))
    >>> call([1, 3]), call([5])
    ([False, True], [True])

    """

    def __init__(self, function: Callable[..., Any], concat: Callable[[list[Any]], Any]) -> None:
        self._function = function
        self._concat = concat
        self._running: Iterator[Any] | None = None
        self._pending: list[Any] = []
        self._told_the_end = False

    def __call__(self, *arguments: Any) -> Any:
        """Answer one batch."""
        expected = len(arguments[0])
        self._pending = [arguments[0] if len(arguments) == 1 else arguments]
        if self._running is None:
            self._told_the_end = False
            self._running = iter(self._function(self._feed()))
        pieces: list[Any] = []
        answered = 0
        try:
            while answered < expected or (self._pending and expected == 0):
                pieces.append(next(self._running))
                answered += len(pieces[-1])
        except StopIteration:
            self._told_the_end = True
        except BaseException:
            self._running = None
            raise
        if self._told_the_end:
            self._running = None
        if not pieces:
            return pieces
        return pieces[0] if len(pieces) == 1 else self._concat(pieces)

    def close(self) -> None:
        """End the generator."""
        running, self._running = self._running, None
        if running is not None and hasattr(running, "close"):
            running.close()

    def _feed(self) -> Iterator[Any]:
        while self._pending:
            yield self._pending.pop()
        self._told_the_end = True
