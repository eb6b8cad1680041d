"""Which files were stored, and whether they are still there as they were."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Mapping

from eddyline.spark.engine.atomic_file import FILE_MODE, FOLDER_MODE, DamagedFileError


def alone_folder(results: pathlib.Path, part: str, query: int) -> pathlib.Path:
    """Return where rows are that were stored for one query only, by the folder of their part."""
    return results / "alone" / part / f"query={query}"


def list_written(folder: pathlib.Path, root: pathlib.Path) -> dict[str, int]:
    """Make what Spark wrote accessible to its owner only; return what `list_files` returns.

    Parameters
    ----------
    folder
        What Spark wrote.
    root
        A folder above it; the folders between them are made accessible to their owner only too.

    Examples
    --------
    >>> import tempfile
    >>> root = pathlib.Path(tempfile.mkdtemp())
    >>> path = root / "a.parquet"
    >>> _ = path.write_bytes(b"1234"), path.chmod(0o644)
    >>> list_written(root, root), oct(path.stat().st_mode & 0o777)
    ({'a.parquet': 4}, '0o600')

    """
    between = [parent for parent in folder.parents if root in parent.parents]
    modes: dict[str | pathlib.Path, int] = dict.fromkeys(between, FOLDER_MODE)
    for parent, _, names in os.walk(folder):
        modes[parent] = FOLDER_MODE
        modes |= {os.path.join(parent, name): FILE_MODE for name in names}
    for path, mode in modes.items():
        with contextlib.suppress(OSError):  # Spark may write as another user
            os.chmod(path, mode)
    return list_files(folder)


def list_files(folder: pathlib.Path) -> dict[str, int]:
    """Return the Parquet files under a folder, by relative path, with their sizes in bytes."""
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*.parquet"))
    }


def check_files(folder: pathlib.Path, files: Mapping[str, int], what: str) -> None:
    """Raise if a stored file is missing or has another size.

    Parameters
    ----------
    folder
        Where the files are.
    files
        As `list_files` returned them when they were stored.
    what
        What they hold, for the error.

    Examples
    --------
    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "a.parquet").write_bytes(b"1234")
    4
    >>> files = list_files(folder)
    >>> check_files(folder, files, "micro-batch 7")
    >>> (folder / "a.parquet").unlink()
    >>> check_files(folder, files, "micro-batch 7")
    Traceback (most recent call last):
    ...
    eddyline.spark.engine.atomic_file.DamagedFileError: .../a.parquet, a file of micro-batch 7, \
is missing; restore it from a backup

    """
    for name, size in files.items():
        path = folder / name
        try:
            actual = path.stat().st_size
        except OSError:
            actual = -1
        if actual != size:
            state = "is missing" if actual < 0 else f"has {actual:,} bytes instead of {size:,}"
            raise DamagedFileError(f"{path}, a file of {what}, {state}; restore it from a backup")
