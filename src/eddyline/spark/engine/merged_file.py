"""Several Parquet files of stored rows as one, written by the driver.

Rows keep their values and the numbers of their queries, except for numbers that no longer count;
a row without any is left out. Both the files that are read and the one that is written have
checksums for each page, which are compared.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import EngineError
from eddyline.spark.engine.atomic_file import FILE_MODE, FOLDER_MODE, sync_folder
from eddyline.spark.engine.number_set import NumberSet

QUERIES = "queries"
_ROWS = 65_536
_GROUP_BYTES = 64 * 2**20
# Spark reads dates and times of files without this mark as another version wrote them.
_VERSION, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacy"


class MergeError(EngineError):
    """Files cannot be merged; they stay as they are."""


@dataclass(frozen=True)
class StoredFile:
    """A file of stored rows.

    Parameters
    ----------
    path
        The file.
    numbers
        The queries whose results count.
    excluded
        By query number, the indexes of rows that are not among its results.

    """

    path: pathlib.Path
    numbers: NumberSet
    excluded: Mapping[int, Iterable[int]] = field(default_factory=dict)


def merge_files(
    files: Sequence[StoredFile], columns: Sequence[str] | None, target: pathlib.Path
) -> int | None:
    """Write the rows of several files into a new one; return its size, None without any rows.

    Parameters
    ----------
    files
        What to read.
    columns
        The columns to keep beside the numbers of queries; None for all.
    target
        The new file; it is durable when this returns.

    """
    opened = [pq.ParquetFile(file.path, page_checksum_verification=True) for file in files]
    schema = common_schema([each.schema_arrow for each in opened], columns)
    marks = [_mark(each) for each in opened]
    writer: pq.ParquetWriter | None = None
    try:
        for table in _grouped(_rows(files, opened, schema), schema):
            if writer is None:
                target.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
                writer = pq.ParquetWriter(
                    target,
                    schema,
                    store_schema=False,
                    write_page_checksum=True,
                    store_decimal_as_integer=True,
                )
            writer.write_table(table)
        if writer is None:
            return None
        if all(mark is not None for mark in marks):
            writer.add_key_value_metadata({_VERSION.decode(): str(marks[0])})
    finally:
        if writer is not None:
            writer.close()
        for each in opened:
            each.close()
    descriptor = os.open(target, os.O_RDWR)
    try:
        os.fchmod(descriptor, FILE_MODE)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(target.parent)
    return target.stat().st_size


def _mark(file: pq.ParquetFile) -> str | None:
    """Return which version of Spark wrote a file, if Spark did."""
    metadata = file.metadata.metadata or {}
    if any(key.startswith(_LEGACY) for key in metadata):
        raise MergeError("dates or times are stored in a calendar of earlier versions")
    version = metadata.get(_VERSION)
    return None if version is None else version.decode()


def _rows(
    files: Sequence[StoredFile], opened: Sequence[pq.ParquetFile], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files that are results of some query, in the common schema."""
    for file, parquet in zip(files, opened, strict=True):
        names = [name for name in parquet.schema_arrow.names if name in schema.names]
        first_row = 0
        for batch in parquet.iter_batches(_ROWS, columns=names):
            kept = keep_numbers(batch, file, first_row)
            first_row += batch.num_rows
            if kept.num_rows:
                columns = [
                    _fit(kept[each.name], each.type)
                    if each.name in names
                    else pa.nulls(kept.num_rows, each.type)
                    for each in schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _grouped(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield tables that are large enough for a row group of their own."""
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        size = sum(each.nbytes for each in group)
        if size > _GROUP_BYTES or sum(each.num_rows for each in group) >= 2 * _ROWS:
            yield pa.Table.from_batches(group, schema)
            group = []
    if group:
        yield pa.Table.from_batches(group, schema)


def keep_numbers(batch: pa.RecordBatch, file: StoredFile, first_row: int = 0) -> pa.RecordBatch:
    """Return rows with only those numbers of queries that count, and only rows that have any.

    Parameters
    ----------
    batch
        Rows with a column of lists of numbers.
    file
        The file they are from.
    first_row
        Index of the first of them in that file.

    Examples
    --------
    >>> rows = pa.record_batch({"id": [7, 8, 9], QUERIES: [[1, 2], [2], [1]]})
    >>> file = StoredFile(pathlib.Path("a.parquet"), NumberSet.of([1]), {1: [2]})
    >>> keep_numbers(rows, file).to_pylist()
    [{'id': 7, 'queries': [1]}]

    """
    lists = batch[QUERIES]
    offsets = lists.offsets.to_numpy()
    values = lists.flatten().to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(len(lists)), np.diff(offsets))
    found, positions = np.unique(values, return_inverse=True)
    is_kept = np.array([int(number) in file.numbers for number in found], dtype=bool)[positions]
    for number, indexes in file.excluded.items():
        is_kept &= ~((values == number) & np.isin(rows + first_row, list(indexes)))
    if is_kept.all():
        return batch
    counts = np.bincount(rows[is_kept], minlength=len(lists))
    wanted = np.flatnonzero(counts)
    ends = np.concatenate([[0], np.cumsum(counts[wanted])]).astype(np.int32)
    numbers = pa.array(values[is_kept], lists.type.value_type)
    kept = batch.take(pa.array(wanted))
    shortened = pa.ListArray.from_arrays(pa.array(ends), numbers, type=lists.type)
    return kept.set_column(kept.schema.get_field_index(QUERIES), QUERIES, shortened)


# --- schemas --------------------------------------------------------------------------------------


def common_schema(schemas: Sequence[pa.Schema], columns: Sequence[str] | None) -> pa.Schema:
    """Return a schema that rows of all given ones fit into; structs get the fields of all.

    Examples
    --------
    >>> one = pa.schema([("s0", pa.struct([("a", pa.int32())])), ("x", pa.int8())])
    >>> other = pa.schema([("s0", pa.struct([("b", pa.string())]))])
    >>> common_schema([one, other], ["s0"])
    s0: struct<a: int32, b: string>
      child 0, a: int32
      child 1, b: string

    """
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for each in schema:
            if columns is None or each.name in (*columns, QUERIES):
                own = _relaxed(each.type)
                known = types.get(each.name)
                types[each.name] = own if known is None else _union(each.name, known, own)
    return pa.schema(list(types.items()))


def _union(name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other:
        return one
    if not (pa.types.is_struct(one) and pa.types.is_struct(other)):
        raise MergeError(f"{name} is stored as {one} and as {other}")
    fields = {each.name: each.type for each in one}
    for each in other:
        if fields.setdefault(each.name, each.type) != each.type:
            raise MergeError(
                f"{name}.{each.name} is stored as {fields[each.name]} and as {each.type}"
            )
    return pa.struct(list(fields.items()))


def _relaxed(data_type: pa.DataType) -> pa.DataType:
    """Return a type in which everything may be NULL."""
    if pa.types.is_struct(data_type):
        return pa.struct([(each.name, _relaxed(each.type)) for each in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(pa.field("element", _relaxed(data_type.value_type)))
    if pa.types.is_map(data_type):
        return pa.map_(_relaxed(data_type.key_type), _relaxed(data_type.item_type))
    return data_type


def _fit(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return an array in a type that is as large or larger."""
    if array.type == data_type:
        return array
    if not pa.types.is_struct(data_type):
        return array.cast(data_type)
    own = {each.name for each in array.type}
    children = [
        _fit(array.field(each.name), each.type)
        if each.name in own
        else pa.nulls(len(array), each.type)
        for each in data_type
    ]
    return pa.StructArray.from_arrays(children, fields=list(data_type), mask=array.is_null())
