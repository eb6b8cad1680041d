"""The driver's view of join state: which containers hold rows that are still needed."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable

from eddyline.spark.state.state_file import StateFile


class JoinState:
    """The containers of one engine.

    Parameters
    ----------
    folder
        Where they are.

    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._files: dict[str, StateFile] = {}

    @property
    def rows(self) -> int:
        """Number of stored rows."""
        return sum(file.rows for file in self._files.values())

    @property
    def bytes(self) -> int:
        """Size of all containers."""
        return sum(file.size for file in self._files.values())

    def __len__(self) -> int:
        return len(self._files)

    def apply(self, added: Iterable[StateFile], removed: Iterable[str]) -> None:
        """Take over what a finished micro-batch changed."""
        for file in added:
            self._files[file.name] = file
        for name in removed:
            self._files.pop(name, None)

    def by_task(self) -> dict[int, tuple[StateFile, ...]]:
        """Return the containers of each task, oldest first."""
        tasks: dict[int, list[StateFile]] = {}
        for file in self._files.values():
            tasks.setdefault(file.task, []).append(file)
        return {task: tuple(files) for task, files in tasks.items()}

    def expired(self, needed_since_us: Callable[[str, tuple[int, int]], int | None]) -> list[str]:
        """Return the names of containers that no later result can need.

        Parameters
        ----------
        needed_since_us
            For a SteM and a query, the oldest event time that the query may still join; None if
            it does not run any more.

        """
        return [
            file.name for file in self._files.values() if self._is_expired(file, needed_since_us)
        ]

    @staticmethod
    def _is_expired(
        file: StateFile, needed_since_us: Callable[[str, tuple[int, int]], int | None]
    ) -> bool:
        for stem, section in file.sections.items():
            for query in section.slots.values():
                since_us = needed_since_us(stem, query)
                if since_us is not None and section.newest_us >= since_us:
                    return False
        return True

    def delete_unlisted(self) -> int:
        """Delete files that no record lists; return their number."""
        deleted = 0
        for path in self._folder.glob("*.stem"):
            if path.name not in self._files:
                path.unlink(missing_ok=True)
                deleted += 1
        return deleted
