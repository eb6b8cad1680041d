"""Progress of planning, for a person at a terminal."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from eddyline.mesh import Progress

SHOW_AFTER_S = 1.0


@contextlib.contextmanager
def planning_progress(what: str) -> Iterator[Progress]:
    """Show a line while something takes more than a second; nothing if there is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda iteration, best_us: None
        return
    status = console.status(Text(f"{what} ..."))
    timer = threading.Timer(SHOW_AFTER_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda iteration, best_us: status.update(
            Text(f"{what}: iteration {iteration}, best so far {best_us:.2f} µs a row")
        )
    finally:
        timer.cancel()
        timer.join()
        status.stop()
