"""The driver's view of join state: which containers hold rows that are still needed."""

from __future__ import annotations

import pathlib
from collections.abc import Collection, Iterable, Mapping

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
    def tasks(self) -> int | None:
        """Number of tasks that stored rows were dealt out to; None without stored rows."""
        return next((file.tasks for file in self._files.values()), None)

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
        """Take over what a finished micro-batch changed; delete what it removed."""
        for file in added:
            self._files[file.name] = file
        for name in removed:
            self._files.pop(name, None)
            (self._folder / name).unlink(missing_ok=True)

    def by_task(self, without: Collection[str] = ()) -> dict[int, tuple[StateFile, ...]]:
        """Return the containers of each task, oldest first, except for some."""
        tasks: dict[int, list[StateFile]] = {}
        for file in self._files.values():
            if file.name not in without:
                tasks.setdefault(file.task, []).append(file)
        return {task: tuple(files) for task, files in tasks.items()}

    def expired(self, needed_since_us: Mapping[tuple[int, int], int]) -> list[str]:
        """Return the names of containers that no later result can need.

        Parameters
        ----------
        needed_since_us
            For each running query, by number and how often it was resumed, the oldest event time
            that it may still join.

        """
        return [
            file.name
            for file in self._files.values()
            if not any(
                section.newest_us >= needed_since_us[query]
                for section in file.sections.values()
                for query in section.slots.values()
                if query in needed_since_us
            )
        ]

    def delete_unlisted(self) -> int:
        """Delete files that no record lists; return their number."""
        deleted = 0
        for path in self._folder.glob("*.stem"):
            if path.name not in self._files:
                path.unlink(missing_ok=True)
                deleted += 1
        return deleted
