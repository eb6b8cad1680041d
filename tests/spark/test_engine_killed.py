"""A killed engine: started again, it has lost nothing and doubled nothing."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark import join_script
from tests.spark.engine_script import TEXTS, open_engine

KILLS = 2
FILES = 24
ROWS = 200
JOIN_FILES = 18
#: Moments at which a driver is killed: so many file operations of a kind come before it.
MOMENTS = [
    (3, "catalogue.jsonl"),
    (0, "begun.json.partial"),
    (0, "replace"),
    (1, "replace"),  # the record is written, and does not count yet
    (2, "open batches"),  # it counts
    (0, "unlink"),
    (0, ".stem"),  # merged or expired containers are deleted
    (1, ".stem"),
    (0, "__init__ rows-"),  # results are merged
    (0, "open rows-"),
    (0, "replace snapshot.json"),
    (1, "rmdir"),  # merged results are deleted
    (0, "open snapshot.json.partial"),
]


def write_files(folder: pathlib.Path) -> list[list[tuple[int, int]]]:
    """Write files that a stream reads one by one, in this order."""
    rng = random.Random(0)
    folder.mkdir()
    files = []
    for number in range(FILES):
        rows = [(number * ROWS + n, rng.randint(0, 1_000)) for n in range(ROWS)]
        path = folder / f"{number:03}.parquet"
        table = pa.table({"id": pa.array([r[0] for r in rows]), "a": [r[1] for r in rows]})
        pq.write_table(table.cast(pa.schema([("id", pa.int64()), ("a", pa.int32())])), path)
        os.utime(path, (number + 1, number + 1))
        files.append(rows)
    return files


@pytest.mark.slow
def test_killed_at_random_moments_nothing_is_lost_and_nothing_twice(
    spark: Any, tmp_path: pathlib.Path
) -> None:
    files = write_files(tmp_path / "source")
    source, path = str(tmp_path / "source"), str(tmp_path / "engine")
    rng = random.Random(os.getpid())
    for number in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.engine_script", source, path, str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"running\n"
        time.sleep(rng.uniform(0.5, 4.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    engine = open_engine(spark, source, path)
    run = engine.start("available now")
    run.process_all_available()
    assert engine._folder.log.state.end == FILES
    first_files = []
    for number in range(KILLS):
        found = sorted(tuple(row) for row in engine.results(f"q{number}").collect())
        first_files.append(found[0][0] // ROWS)  # before that, the query was not there
        rows = [row for own in files[first_files[-1] :] for row in own]
        divisor, least = number + 2, number
        expected = [(id_, a) for id_, a in rows if a % divisor == 0 and id_ >= least]
        assert found == sorted(expected), TEXTS[number]
        assert engine.queries()[f"q{number}"].matched == len(found)
    assert first_files[0] == 0
    assert first_files == sorted(first_files)
    engine.close()


@pytest.mark.slow
def test_drivers_killed_between_file_operations_lose_and_double_no_join(
    spark: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process goes on where the one before was killed."""
    source, path = tmp_path / "source", tmp_path / "engine"
    join_script.write_sources(source, JOIN_FILES, rows=6)
    for number, kind in MOMENTS:
        arguments = ["local[2]", str(source), str(path), str(number), kind]
        process = subprocess.run(
            [sys.executable, "-m", "tests.spark.join_script", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            check=False,
        )
        assert process.returncode == -signal.SIGKILL, kind
    join_script.tidy_often(monkeypatch)
    with join_script.open_engine(spark, source, path) as engine:
        engine.start("available now").process_all_available()
        assert engine._folder.log.state.end == JOIN_FILES
        for name in join_script.SQL:
            expected = join_script.answer(spark, source, name)
            assert expected
            assert sorted(map(tuple, engine.results(name).collect())) == expected
            assert engine.queries()[name].matched == len(expected)
