"""The driver's view of join state: which containers hold rows that are still needed."""

from __future__ import annotations

import pathlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from eddyline.spark.state.needs import Need
from eddyline.spark.state.state_file import StateFile
from eddyline.spark.state.stored_lineage import SlotKeys


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

    def expired(self, needs: Mapping[str, Sequence[Need]], slot_keys: SlotKeys) -> list[str]:
        """Return the names of containers that no later result can need.

        Parameters
        ----------
        needs
            By name of the SteM, what running queries may still join of its rows.
        slot_keys
            What the slots in `needs` stand for.

        """
        return [
            file.name
            for file in self._files.values()
            if not any(
                slot_keys[need.slot] in stored and need.reaches(section.newest_us, section.last_row)
                for stem, section in file.sections.items()
                for stored in [set(section.slots.values())]
                for need in needs.get(stem, ())
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
