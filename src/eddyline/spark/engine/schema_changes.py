"""A stream that is registered with other columns than the catalogue has (`docs/decisions/0030`)."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType

from eddyline.errors import EngineError
from eddyline.spark.engine.result_part import ResultPart
from eddyline.spark.engine.stored_files import alone_folder
from eddyline.sql.dialect import quoted
from eddyline.sql.query import Query


@dataclass(frozen=True)
class SchemaChange:
    """How the columns of a stream differ from those in the catalogue.

    Parameters
    ----------
    stream
        Name of the stream.
    before, now
        Types of the columns that differ, by name; a column that was added or removed is in one.

    Examples
    --------
    >>> one = StructType().add("a", "integer").add("b", "integer")
    >>> other = StructType().add("a", "integer").add("b", "date").add("c", "integer")
    >>> change = SchemaChange.between("s", one, other)
    >>> change.before, change.now, list(change.lost)
    ({'b': 'int'}, {'b': 'date', 'c': 'int'}, ['b'])

    """

    stream: str
    before: Mapping[str, str]
    now: Mapping[str, str]

    @classmethod
    def between(cls, stream: str, known: StructType, given: StructType) -> SchemaChange:
        """Return the change from one schema to another; the order of columns does not matter."""
        before, now = (
            {column.name: column.dataType.simpleString() for column in schema}
            for schema in (known, given)
        )
        return cls(
            stream,
            {name: data_type for name, data_type in before.items() if now.get(name) != data_type},
            {name: data_type for name, data_type in now.items() if before.get(name) != data_type},
        )

    @property
    def lost(self) -> Iterable[str]:
        """Columns that are gone, or of another type."""
        return self.before

    def described(self, column: str) -> str:
        """Say what became of a column."""
        if column not in self.now:
            return "is gone"
        return f"was {self.before[column]} and is {self.now[column]} now"

    def check_query(self, name: str, query: Query) -> None:
        """Refuse the change if a query uses a column that it loses."""
        for column in self.lost:
            if uses(query, self.stream, column):
                raise EngineError(
                    f"query {name!r} uses the column {column!r} of stream {self.stream!r}, which "
                    f"{self.described(column)}; give the stream the column it had, or drop the "
                    f"query first"
                )
            # Join state may hold it for a query that was dropped.
            if column in self.now and query.join is not None and self.stream in query.streams:
                raise EngineError(
                    f"query {name!r} joins stream {self.stream!r}, and its join state may hold the "
                    f"column {column!r}, which {self.described(column)}; give the stream the "
                    f"column it had, or drop the query first"
                )

    def check_stored(self, number: int, results: pathlib.Path, parts: Iterable[ResultPart]) -> None:
        """Refuse the change if stored results hold a column that has another type now.

        Parameters
        ----------
        number
            Of the stream.
        results
            The folder of results.
        parts
            What is stored.

        """
        if not self.now:
            return
        structs = re.compile(rf"s{number}|s{number}_\d+|late{number}")
        for part in parts:
            for path in _files_of(part, results):
                for column, data_type in _stored_types(path, structs).items():
                    if self.now.get(column, data_type) != data_type:
                        raise EngineError(
                            f"stored results have the column {column!r} of stream "
                            f"{self.stream!r} as {data_type}, and it is {self.now[column]} now; "
                            f"give the stream the column it had, or the new one another name"
                        )


def uses(query: Query, stream: str, column: str) -> bool:
    """Whether a query names a column of a stream, or selects all of its columns.

    Examples
    --------
    >>> from eddyline.sql.parse import parse
    >>> from eddyline.sql.schemas import Schemas
    >>> schemas = Schemas({"s": {"a": "int", "b": "int", "c": "int"}})
    >>> query = parse("SELECT A FROM s x WHERE b > 1", schemas)
    >>> [uses(query, "s", column) for column in "abc"]
    [True, True, False]

    """
    text = query.understood.lower()
    for source in query.sources:
        if source.is_stream and source.name == stream:
            written = f"{quoted(source.alias)}.{quoted(column)}".lower()
            if column in source.columns or written in text:
                return True
    return False


def _files_of(part: ResultPart, results: pathlib.Path) -> Iterable[pathlib.Path]:
    folder = results / part.folder
    yield from [folder / name for name in {**(part.files or {}), **part.join_files}]
    for number, files in part.alone.items():
        alone = alone_folder(results, part.folder, number)
        yield from [alone / name for name in files]


def _stored_types(path: pathlib.Path, structs: re.Pattern[str]) -> dict[str, str]:
    """Return the columns of a stream that a file holds, with their types as Spark writes them."""
    types = {}
    for struct in pq.read_schema(path):
        if structs.fullmatch(struct.name) and pa.types.is_struct(struct.type):
            for field in struct.type:
                try:
                    types[field.name] = from_arrow_type(field.type).simpleString()
                except PySparkException:  # a type that the workers never see
                    continue
    return types
