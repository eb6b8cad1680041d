"""An engine's folder whose results are written without Spark, to be merged."""

from __future__ import annotations

import os
import pathlib
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.journal import Event
from eddyline.spark.engine.batch_log import BatchLog
from eddyline.spark.engine.batch_record import BatchRecord
from eddyline.spark.engine.catalogue import Catalogue
from eddyline.spark.engine.housekeeping import Housekeeping
from eddyline.spark.engine.result_part import ResultPart
from eddyline.spark.engine.stored_files import alone_folder

Row = dict[str, Any]


class Site:
    """An engine's folder whose results are written without Spark."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.results = folder, folder / "results"
        self.rng = random.Random(7)
        self.events: list[Event] = []
        #: All results that a query should have, by number.
        self.expected: dict[int, Counter[str]] = {}
        self.open()

    def open(self, keep_s: float | None = None) -> None:
        self.log = BatchLog(self.folder / "batches")
        self.catalogue = Catalogue(self.folder)
        self.keeping = Housekeeping(
            self.log, self.results, self.catalogue, self.events.append, keep_s
        )
        self.log.check_stored(self.keeping.merged_batches())
        self.log.refuse_if_lost()
        self.keeping.at_opening()

    def run(self, batches: int, tables: Mapping[str, int] | None = None) -> None:
        for _ in range(batches):
            self.finish(tables or {})
            self.keeping.after_batch()

    def finish(self, tables: Mapping[str, int]) -> None:
        """Finish a micro-batch: two streams, a query of its own files, excluded rows, a join."""
        batch = self.log.state.end
        record = BatchRecord(1, dict(tables))
        folder = self.results / f"batch={batch}"
        for stream, columns in ((0, ("a", "b")), (1, ("k",))):
            names = columns if batch % 2 else columns[:1]
            rows = [self._row(f"s{stream}", names, (1, 2, 3, 4)) for _ in range(5)]
            name = f"_source={stream}/part-{batch}.parquet"
            assert record.files is not None
            record.files[name] = write(folder / name, rows)
            for index, row in enumerate(rows):
                if batch % 5 == 0 and index == 2 and 1 in row["queries"]:
                    record.excluded.setdefault(1, []).append((f"part-{batch}.parquet", index))
                    row["queries"].remove(1)
                if batch % 3 == 0 and 4 in row["queries"]:
                    row["queries"].remove(4)  # it failed, and has no results of this micro-batch
                if batch % 7 == 0 and 2 in row["queries"]:
                    row["queries"].remove(2)  # its rows are in files of its own
            self._expect(rows, record)
        if batch % 7 == 0:
            rows = [self._row("s0", ("a",), (2,), 1) for _ in range(3)]
            own = alone_folder(self.results, f"batch={batch}", 2)
            record.alone[2] = {"own.parquet": write(own / "own.parquet", rows)}
            self._expect(rows, record)
        rows = [
            {**self._row("s0_0", ("a",), (8, 9)), **self._row("s1_0", ("k",), (8, 9))}
            for _ in range(2)
        ]
        record.join_files["join-1.parquet"] = write(folder / "join-1.parquet", rows)
        self._expect(rows, record)
        self.log.begin(batch, 1, dict(tables), f"offsets {batch}")
        self.log.finish(batch, record)

    def _row(self, struct: str, names: tuple[str, ...], queries: tuple[int, ...], least=1) -> Row:
        numbers = sorted(self.rng.sample(queries, self.rng.randint(least, len(queries))))
        values = {name: self.rng.choice([None, self.rng.randrange(10**6)]) for name in names}
        return {struct: values, "queries": numbers}

    def _expect(self, rows: list[Row], record: BatchRecord) -> None:
        for row in rows:
            for number in row["queries"]:
                record.counts[number] = record.counts.get(number, 0) + 1
                self.expected.setdefault(number, Counter())[describe(row)] += 1

    def found(self, parts: list[ResultPart] | None = None) -> dict[int, Counter[str]]:
        """Read the results of every query as `ResultStore` does."""
        found: dict[int, Counter[str]] = {}
        for part in self.log.parts() if parts is None else parts:
            for number in part.numbers:
                for row in self._rows_of(part, number):
                    found.setdefault(number, Counter())[describe(row)] += 1
        return found

    def _rows_of(self, part: ResultPart, number: int) -> list[Row]:
        folder, files = self.results / part.folder, dict(part.files or {})
        if number >= 8:
            files = dict(part.join_files)
        elif number in part.alone:
            folder, files = alone_folder(self.results, part.folder, number), part.alone[number]
        rows = []
        for name, size in files.items():
            path = folder / name
            assert path.stat().st_size == size
            excluded = set(part.excluded.get(number, ()))
            for index, row in enumerate(pq.ParquetFile(path).read().to_pylist()):
                if number in row["queries"] and (path.name, index) not in excluded:
                    rows.append(row)
        return rows

    def files(self) -> int:
        return sum(len(names) for _, _, names in os.walk(self.folder))


def describe(row: Row) -> str:
    """Return the values of a row; a column that was not stored is as good as NULL."""
    values = {
        f"{struct}.{name}": value
        for struct, columns in row.items()
        if struct != "queries"
        for name, value in (columns or {}).items()
        if value is not None
    }
    return repr(sorted(values.items()))


def write(path: pathlib.Path, rows: list[Row]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    fields = [
        pa.field("queries", pa.list_(pa.int32()))
        if field.name == "queries"
        else pa.field(field.name, pa.struct([(child.name, pa.int64()) for child in field.type]))
        for field in table.schema
    ]
    pq.write_table(table.cast(pa.schema(fields)), path, store_schema=False)
    return path.stat().st_size
