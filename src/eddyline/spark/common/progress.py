"""Progress of a search for classes, for a person at a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from eddyline.mesh import Progress


@contextlib.contextmanager
def search_progress(what: str) -> Iterator[Progress]:
    """Show a line while a search runs; nothing if the output is not a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda iteration, best_us: None
        return
    with console.status(Text(f"{what} ...")) as status:
        yield lambda iteration, best_us: status.update(
            Text(f"{what}: iteration {iteration}, best so far {best_us:.2f} µs a row")
        )
