"""Shows how far a search for classes has come, to somebody who sits at a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console

from eddyline.mesh import Progress


@contextlib.contextmanager
def search_progress(what: str) -> Iterator[Progress]:
    """Show a line while a search runs; nothing where the output is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda iteration, best_us: None
        return
    with console.status(f"{what} ...") as status:
        yield lambda iteration, best_us: status.update(
            f"{what}: iteration {iteration}, best so far {best_us:.2f} µs a row"
        )
