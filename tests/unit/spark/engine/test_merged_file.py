"""Which results are merged, and how their files become one."""

from __future__ import annotations

import pathlib
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.spark.engine.merged_file import (
    MergeError,
    StoredFile,
    common_schema,
    keep_numbers,
    merge_files,
)
from eddyline.spark.engine.number_set import NumberSet
from eddyline.spark.engine.result_merger import FAN_IN, FAN_IN_NEW, LARGE_BYTES, choose_merges
from eddyline.spark.engine.result_part import ResultPart
from tests.unit.spark.engine.merge_site import write


class TestChoice:
    def part(self, batch: int, **other: Any) -> ResultPart:
        return ResultPart(batch, f"batch={batch}", {}, NumberSet.of([1]), **other)

    def test_bytes_are_rewritten_a_logarithmic_number_of_times(self) -> None:
        parts: dict[int, ResultPart] = {}
        rewritten = Counter[int]()
        for batch in range(1_030):
            parts[batch] = self.part(batch, files={"x": 100})
            for merge in choose_merges(parts.values()):
                newest = merge[-1]
                for part in merge:
                    del parts[part.batch]
                    rewritten[part.tier] += part.size
                size = sum(part.size for part in merge)
                parts[newest.batch] = self.part(
                    newest.batch, files={"x": size}, tier=newest.tier + 1
                )
        assert len(parts) < 3 * FAN_IN + FAN_IN_NEW
        assert max(rewritten) == 2
        assert max(rewritten.values()) <= 1_030 * 100

    def test_large_parts_are_left_alone(self) -> None:
        large = [self.part(n, files={"x": LARGE_BYTES}) for n in range(40)]
        assert choose_merges(large) == []
        medium = [self.part(n, files={"x": LARGE_BYTES // 2}) for n in range(16)]
        assert [len(merge) for merge in choose_merges(medium)] == [8]

    def test_parts_far_apart_are_left_alone(self) -> None:
        parts = [self.part(n, began_s=100.0 * n, finished_s=100.0 * n) for n in range(40)]
        merges = choose_merges(parts, span_max_s=450)
        assert [[part.batch for part in merge] for merge in merges][:2] == [
            [0, 1, 2, 3, 4],
            [5, 6, 7, 8, 9],
        ]

    def test_what_could_not_be_merged_is_left_alone(self) -> None:
        parts = [self.part(n) for n in range(16)]
        assert choose_merges(parts, without={"batch=3"}) == []


class TestFiles:
    def test_types_that_contradict_each_other_are_refused(self) -> None:
        one = pa.schema([("s0", pa.struct([("a", pa.int32())]))])
        other = pa.schema([("s0", pa.struct([("a", pa.string())]))])
        with pytest.raises(MergeError, match=r"s0\.a is stored as int32 and as string"):
            common_schema([one, other], None)

    def test_a_garbled_page_is_noticed(self, tmp_path: pathlib.Path) -> None:
        rows = [{"s0": {"a": n}, "queries": [1]} for n in range(500)]
        for name in ("a", "b"):
            write(tmp_path / name, rows)
        files = [StoredFile(tmp_path / name, NumberSet.of([1])) for name in ("a", "b")]
        assert merge_files(files, None, tmp_path / "merged")
        content = bytearray((tmp_path / "merged").read_bytes())
        content[200] ^= 1
        (tmp_path / "merged").write_bytes(content)
        again = StoredFile(tmp_path / "merged", NumberSet.of([1]))
        with pytest.raises(OSError, match="checksum"):
            merge_files([again], None, tmp_path / "twice")

    def test_nested_values_and_missing_columns(self, tmp_path: pathlib.Path) -> None:
        nested = pa.struct(
            [
                pa.field("m", pa.map_(pa.string(), pa.field("value", pa.int32(), False)), False),
                pa.field("l", pa.list_(pa.field("element", pa.int8(), False)), False),
            ]
        )
        first = [{"m": [("x", 1)], "l": [1, 2]}, None]
        queries = pa.array([[1], [1]], pa.list_(pa.int32()))
        pq.write_table(
            pa.table({"s0": pa.array(first, nested), "queries": queries}), tmp_path / "a"
        )
        write(tmp_path / "b", [{"s0": {"n": 5}, "queries": [1]}])
        files = [StoredFile(tmp_path / name, NumberSet.of([1])) for name in ("a", "b")]
        assert merge_files(files, ["s0"], tmp_path / "merged")
        found = pq.ParquetFile(tmp_path / "merged").read()["s0"].to_pylist()
        assert found == [
            {"m": [("x", 1)], "l": [1, 2], "n": None},
            None,
            {"m": None, "l": None, "n": 5},
        ]

    def test_no_rows_are_no_file(self, tmp_path: pathlib.Path) -> None:
        write(tmp_path / "a", [{"s0": {"a": 1}, "queries": [1]}])
        file = StoredFile(tmp_path / "a", NumberSet.of([2]))
        assert merge_files([file], None, tmp_path / "merged") is None
        assert not (tmp_path / "merged").exists()

    def test_numbers_of_sliced_rows(self) -> None:
        rows = pa.record_batch({"id": [6, 7, 8], "queries": [[3], [1, 2], [2]]}).slice(1)
        file = StoredFile(pathlib.Path("x"), NumberSet.of([2]), {2: [11]})
        assert keep_numbers(rows, file, 10).to_pylist() == [{"id": 7, "queries": [2]}]
