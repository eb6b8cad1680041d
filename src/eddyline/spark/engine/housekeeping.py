"""Keeps the folder of an engine small however long it runs (`docs/decisions/0020`).

Everything happens between micro-batches, and is committed by a snapshot of the log: what it lists
exists, and whatever else lies in the folder of results is deleted.
"""

from __future__ import annotations

import pathlib
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from eddyline.errors import EngineError
from eddyline.journal import Event
from eddyline.journal.events import TidyingFailed
from eddyline.spark.engine.batch_log import BatchLog
from eddyline.spark.engine.catalogue import Catalogue
from eddyline.spark.engine.log_state import LogState
from eddyline.spark.engine.result_merger import FAN_IN_NEW, MERGED, ResultMerger, choose_merges
from eddyline.spark.engine.result_part import ResultPart

#: A snapshot takes the place of so many records of micro-batches.
SNAPSHOT_EVERY = FAN_IN_NEW
#: Merges at a time; an old folder that has many small files is merged little by little.
MERGES_MAX = 8
#: Files that `results` handed out are kept for so long after it, also if they were merged; dropped
#: queries stay in the catalogue for so long.
GRACE_S = 600.0
#: Results are removed in so many steps during the time that they are kept.
KEEP_STEPS = 8


class Housekeeping:
    """What is done between micro-batches so that files do not pile up.

    Parameters
    ----------
    log
        The micro-batches of the engine.
    results
        The folder of results.
    catalogue
        Says which queries were dropped.
    note
        Writes a decision into the journal.
    keep_s
        For how long results are kept; None for any time.

    """

    def __init__(
        self,
        log: BatchLog,
        results: pathlib.Path,
        catalogue: Catalogue,
        note: Callable[[Event], None],
        keep_s: float | None = None,
    ) -> None:
        self._log = log
        self._catalogue = catalogue
        self._keep_s = float("inf") if keep_s is None else keep_s
        self._results = results
        self._note = note
        self._merger = ResultMerger(results)
        self._unmergeable: set[str] = set()
        #: Folders of replaced parts that a reader may still need.
        self._replaced: set[str] = set()
        self._is_failing = False
        #: When dropped queries were first found in the catalogue.
        self._dropped_s: dict[int, float] = {}

    def after_batch(self) -> None:
        """Tidy up if enough micro-batches were finished since the last time.

        What fails is tried again after the next micro-batch; it must not stop the run.
        """
        if self._log.records >= SNAPSHOT_EVERY:
            self._try(self._tidy)

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            if not self._is_failing:
                self._note(TidyingFailed(reason=f"{type(error).__name__}: {error}"))
            self._is_failing = True
        else:
            self._is_failing = False

    def _tidy(self) -> None:
        """Merge results, write a snapshot, and delete what it replaces."""
        dropped = self._catalogue.dropped()
        before = self._log.state
        state = self._without_old(before).without_queries(dropped)
        if not self._is_failing:  # else merged files would pile up that no snapshot lists
            state = replace(state, parts=self._merge(state.parts))
        self._log.save(state)
        kept = {part.folder for part in state.parts.values()}
        self._replaced |= {part.folder for part in before.parts.values()} - kept
        self._delete_replaced()
        self._catalogue.compact(dropped, self._are_overdue(dropped))

    def _are_overdue(self, dropped: Collection[int]) -> bool:
        """Whether one of the dropped queries has been in the catalogue for long enough."""
        now_s = time.monotonic()
        self._dropped_s = {number: self._dropped_s.get(number, now_s) for number in dropped}
        return any(since_s <= now_s - GRACE_S for since_s in self._dropped_s.values())

    def _without_old(self, state: LogState) -> LogState:
        """Return the state without results that are older than they are kept."""
        since_s = time.time() - self._keep_s
        parts = {b: part for b, part in state.parts.items() if part.finished_s >= since_s}
        return replace(state, parts=parts)

    def _merge(self, parts: Mapping[int, ResultPart]) -> dict[int, ResultPart]:
        """Return the parts, some of them merged into new ones."""
        merged = dict(parts)
        span_max_s = self._keep_s / KEEP_STEPS
        merges = choose_merges(parts.values(), self._unmergeable, span_max_s)
        for chosen in merges[:MERGES_MAX]:
            try:
                part = self._merger.merge(chosen)
            except EngineError as error:
                self._unmergeable |= self._at_fault(chosen)
                self._note(TidyingFailed(reason=str(error)))
                continue
            for each in chosen:
                del merged[each.batch]
            if part is not None:
                merged[part.batch] = part
        return dict(sorted(merged.items()))

    def _at_fault(self, parts: Sequence[ResultPart]) -> set[str]:
        """Return the folders of parts that fail by themselves; of all, if they fail together."""
        failed = set()
        for part in parts:
            try:
                alone = self._merger.merge([part])
            except EngineError:
                failed.add(part.folder)
            else:
                self._delete([] if alone is None else [alone.folder])
        return failed or {part.folder for part in parts}

    def _delete_replaced(self) -> None:
        """Delete replaced parts, except for those that were handed out a short while ago."""
        since_s = time.monotonic() - GRACE_S
        due = [name for name in self._replaced if self._log.handed_out_s(name) <= since_s]
        self._delete(due)
        self._replaced -= set(due)

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            for folder in (self._results, self._results / "alone"):
                shutil.rmtree(folder / name, ignore_errors=True)
            self._log.forget_reader(name)

    # --- opening -----------------------------------------------------------------------------

    def merged_batches(self) -> list[int]:
        """Return the newest micro-batch of each merged part that lies in the folder of results."""
        names = [path.name.removeprefix(MERGED) for path in self._results.glob(f"{MERGED}*")]
        numbers = [name.split("-", maxsplit=1)[0] for name in names]
        return [int(number) for number in numbers if number.isdigit()]

    def at_opening(self) -> None:
        """Remove old results, and whatever a process left behind that was killed."""
        self._try(self._save_at_opening)
        self._log.delete_leftovers()
        listed = {part.folder for part in self._log.parts()}
        found = [
            path.name
            for folder in (self._results, self._results / "alone")
            for path in folder.glob("*")
            if path.name.startswith(("batch=", MERGED))
        ]
        self._delete(name for name in found if name not in listed)

    def _save_at_opening(self) -> None:
        state = self._without_old(self._log.state)
        is_old = len(state.parts) < len(self._log.state.parts)
        if is_old or self._log.records > SNAPSHOT_EVERY:
            self._log.save(state)
