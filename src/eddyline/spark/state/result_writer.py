"""Results of joins, written by the worker that found them: one Parquet file for each task.

A row of the file is a combination: a struct for each role, with the columns that some query needs,
and the numbers of the queries it is a result of. SELECT is computed when results are read
(`docs/decisions/0009`).
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import uuid
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.joins.combinations import Combinations
from eddyline.joins.plan import Role
from eddyline.operators.bitmaps import set_bits
from eddyline.spark.state.join_plan import StemLayout, late_number
from eddyline.spark.state.state_file import StateFileError

QUERIES = "queries"


def late_field(stream: int) -> str:
    """Return the name of the struct that holds late rows of a stream."""
    return f"late{stream}"


def write_late_rows(folder: pathlib.Path, stem: StemLayout, rows: pa.StructArray) -> dict[str, int]:
    """Store late rows of a stream in a file of their own; return its name and size.

    Parameters
    ----------
    folder
        Of the results of the micro-batch.
    stem
        The SteM that they arrived at.
    rows
        The rows.

    """
    numbers = pa.array([[late_number(stem.stream)]] * len(rows), pa.list_(pa.int32()))
    columns = {QUERIES: numbers, late_field(stem.stream): rows}
    writer = ResultFile(folder / f"join-late-{uuid.uuid4().hex[:12]}.parquet")
    writer.write(pa.record_batch(columns))
    return writer.close()


class ResultWriter:
    """Writes the results of one task.

    Parameters
    ----------
    folder
        Of the results of the micro-batch.
    roles
        For each role that queries have, the name of its struct.
    schemas
        For each struct, the columns that results keep.
    numbers
        By slot, the number of each query.

    """

    def __init__(
        self,
        folder: pathlib.Path,
        roles: Mapping[Role, str],
        schemas: Mapping[str, pa.Schema],
        numbers: Mapping[int, int],
    ) -> None:
        self._file = ResultFile(folder / f"join-{uuid.uuid4().hex[:12]}.parquet")
        self._roles = roles
        self._schemas = dict(sorted(schemas.items()))
        self._numbers = np.full(max(numbers, default=0) + 1, -1, dtype=np.int32)
        self._numbers[list(numbers)] = list(numbers.values())
        #: Results so far, by query number, and each counted once for all its queries.
        self.counts: dict[int, int] = {}
        self.combinations = 0

    def write(self, results: Combinations) -> None:
        """Write results with the numbers of their queries."""
        self.combinations += len(results)
        columns = [self._to_numbers(results)]
        filled = {self._roles[role]: role for role in results.blocks}
        for name, schema in self._schemas.items():
            if name in filled:
                columns.append(results.payload(filled[name], schema))
            else:
                columns.append(pa.nulls(len(results), pa.struct(list(schema))))
        names = [QUERIES, *self._schemas]
        self._file.write(pa.RecordBatch.from_arrays(columns, names))

    def _to_numbers(self, results: Combinations) -> pa.ListArray:
        """Return the numbers of the queries of each result, and count them."""
        rows, slots = set_bits(results.interested)
        numbers, times = self._numbers[slots], 1
        if len(results.interested) == 1:  # the same for all results
            times = len(results)
            offsets = np.arange(times + 1, dtype=np.int32) * np.int32(len(numbers))
        else:
            offsets = np.zeros(len(results) + 1, dtype=np.int32)
            np.cumsum(np.bincount(rows, minlength=len(results)), out=offsets[1:])
        for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
            self.counts[int(number)] = self.counts.get(int(number), 0) + int(count) * times
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.tile(numbers, times)))

    def close(self) -> dict[str, int]:
        """Make the file durable; return its name and size, or nothing without results."""
        return self._file.close()


class ResultFile:
    """A Parquet file that is made with its first rows.

    Parameters
    ----------
    path
        Of the file.

    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        try:
            if self._writer is None:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._writer = pq.ParquetWriter(
                    str(self._path),
                    batch.schema,
                    use_dictionary=[f"{QUERIES}.list.element"],
                    store_schema=False,
                )
            self._writer.write_batch(batch)
        except OSError as error:
            raise self._cannot_write(error) from error

    def close(self) -> dict[str, int]:
        """Make the file durable; return its name and size, or nothing without results."""
        if self._writer is None:
            return {}
        try:
            self._writer.close()
            descriptor = os.open(self._path, os.O_RDWR)
            try:
                os.fchmod(descriptor, 0o600)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            return {self._path.name: self._path.stat().st_size}
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> StateFileError:
        """Delete what was written, as it takes up space; return the error to raise."""
        with contextlib.suppress(OSError):
            if self._writer is not None:
                self._writer.close()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        return StateFileError(
            f"cannot write results to {self._path}: {error.strerror or error}; free some space or "
            f"grant access, then start the engine again: nothing is lost"
        )
