"""Chooses stored results to merge, and merges them: small files become few."""

from __future__ import annotations

import pathlib
import shutil
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.spark.engine.merged_file import QUERIES, MergeError, StoredFile, merge_files
from eddyline.spark.engine.number_set import NumberSet
from eddyline.spark.engine.result_part import ResultPart
from eddyline.spark.engine.stored_files import alone_folder, check_files
from eddyline.spark.engine.stream_info import SOURCE

#: So many parts of one tier are merged into one of the next; new ones as often as is tidied up.
FAN_IN, FAN_IN_NEW = 8, 16
#: Parts of this size are not merged any more: the driver would rewrite too much.
LARGE_BYTES = 8 * 2**20
#: What one merge reads at most.
MERGE_BYTES_MAX = 4 * LARGE_BYTES
MERGED = "merged-"
_JOINS = "joins"


def choose_merges(
    parts: Iterable[ResultPart], without: Collection[str] = (), span_max_s: float = float("inf")
) -> list[list[ResultPart]]:
    """Return which parts to merge with each other.

    Only parts with the same versions of the static tables are merged. If there are newer versions,
    nothing is waited for.

    Parameters
    ----------
    parts
        All parts.
    without
        Folders of parts that cannot be merged.
    span_max_s
        Time between the oldest and the newest micro-batch of a merged part, at most.

    Examples
    --------
    >>> parts = [ResultPart(n, f"batch={n}", {}, NumberSet.of([1])) for n in range(20)]
    >>> [[part.batch for part in merge] for merge in choose_merges(parts)]
    [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]
    >>> choose_merges(parts[:15])
    []

    """
    listed = sorted(parts, key=lambda part: part.batch)
    current = listed[-1].tables if listed else {}
    groups: dict[tuple[object, int], list[ResultPart]] = {}
    for part in listed:
        if part.size < LARGE_BYTES and part.files is not None and part.folder not in without:
            is_current = part.tables == current
            key = (tuple(sorted(part.tables.items())), part.tier if is_current else -1)
            groups.setdefault(key, []).append(part)
    merges = []
    for (_, tier), group in groups.items():
        fan_in = FAN_IN if tier > 0 else FAN_IN_NEW
        chunks = _cut(group, fan_in, span_max_s)
        open_chunk = chunks[-1]
        if tier >= 0 and len(open_chunk) < fan_in:
            chunks.pop()
        merges += [chunk for chunk in chunks if len(chunk) > 1]
    return merges


def _cut(parts: Sequence[ResultPart], count: int, span_max_s: float) -> list[list[ResultPart]]:
    """Return parts in chunks of some number, which are neither too large nor too far apart."""
    chunks: list[list[ResultPart]] = [[]]
    for part in parts:
        chunk = chunks[-1]
        if chunk and (
            len(chunk) == count
            or sum(each.size for each in chunk) + part.size > MERGE_BYTES_MAX
            or part.finished_s - min(each.began_s for each in chunk) > span_max_s
        ):
            chunk = []
            chunks.append(chunk)
        chunk.append(part)
    return chunks


class ResultMerger:
    """Merges parts of the stored results of one engine.

    Parameters
    ----------
    results
        The folder of results.

    """

    def __init__(self, results: pathlib.Path) -> None:
        self._results = results

    def merge(self, parts: Sequence[ResultPart]) -> ResultPart | None:
        """Write a part with the results of several; None if none of their rows count any more.

        Raises
        ------
        MergeError
            If they cannot be merged, as when a file is damaged; nothing is left behind.

        """
        newest = max(parts, key=lambda part: part.batch)
        name = f"{MERGED}{newest.batch}-{uuid.uuid4().hex[:12]}"
        try:
            sizes = self._write(parts, self._results / name)
        except BaseException as error:
            shutil.rmtree(self._results / name, ignore_errors=True)
            if isinstance(error, OSError | pa.ArrowException):
                raise MergeError(f"{self._results / parts[0].folder}: {error}") from error
            raise
        if not sizes:
            return None
        return replace(
            newest,
            folder=name,
            numbers=NumberSet.of(number for part in parts for number in part.numbers),
            files={file: size for file, size in sizes.items() if "/" in file},
            join_files={file: size for file, size in sizes.items() if "/" not in file},
            alone={},
            excluded={},
            began_s=min(part.began_s for part in parts),
            finished_s=max(part.finished_s for part in parts),
            tier=1 + max(part.tier for part in parts),
        )

    def _write(self, parts: Sequence[ResultPart], folder: pathlib.Path) -> dict[str, int]:
        """Write a file for each stream, and one for joins; return those that have rows."""
        targets: dict[str, list[StoredFile]] = {}
        for part in parts:
            for target, file in self._files(part):
                targets.setdefault(target, []).append(file)
        sizes = {}
        for target, files in targets.items():
            file_name = f"rows-{uuid.uuid4().hex[:12]}.parquet"
            if target == _JOINS:
                name, columns = file_name, None
            else:
                name, columns = f"{SOURCE}={target.removeprefix('s')}/{file_name}", [target]
            size = merge_files(files, columns, folder / name)
            if size is not None:
                sizes[name] = size
        return sizes

    def _files(self, part: ResultPart) -> Iterable[tuple[str, StoredFile]]:
        """Yield the files of a part, each with the struct of its stream, or that it is of joins."""
        what, folder = f"micro-batch {part.batch}", self._results / part.folder
        files = part.files or {}
        check_files(folder, files, what)
        numbers = part.numbers.without(part.alone)
        for name in files:
            number = name.split("/", maxsplit=1)[0].removeprefix(f"{SOURCE}=")
            yield f"s{number}", StoredFile(folder / name, numbers, _excluded(part, name))
        check_files(folder, part.join_files, what)
        for name in part.join_files:
            yield _JOINS, StoredFile(folder / name, part.numbers, _excluded(part, name))
        for query, own in part.alone.items():
            if query not in part.numbers:
                continue
            folder = alone_folder(self._results, part.folder, query)
            check_files(folder, own, what)
            for name in own:
                file = StoredFile(folder / name, NumberSet.of([query]), _excluded(part, name))
                yield _struct_of(file.path), file


def _struct_of(path: pathlib.Path) -> str:
    """Return the column with the rows of the stream."""
    structs: list[str] = [name for name in pq.read_schema(path).names if name != QUERIES]
    if len(structs) != 1:
        raise MergeError(f"{path} has the columns {', '.join(structs) or 'of no stream'}")
    return structs[0]


def _excluded(part: ResultPart, name: str) -> dict[int, list[int]]:
    """Return the rows of a file that are not results, by query number."""
    file = pathlib.PurePath(name).name
    return {number: part.excluded_by_file(number).get(file, []) for number in part.excluded}
