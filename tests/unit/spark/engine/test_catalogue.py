"""The catalogue and the log of micro-batches, as files."""

from __future__ import annotations

import os
import pathlib
import random
import threading
import zlib

import pytest

from eddyline.errors import EngineError
from eddyline.spark.engine import catalogue as catalogue_module
from eddyline.spark.engine.catalogue import FILE, Catalogue
from eddyline.spark.engine.catalogue_entries import StreamEntry, TableEntry


def test_queries_run_from_the_version_they_were_added_to_the_one_they_were_dropped(
    tmp_path: pathlib.Path,
) -> None:
    catalogue = Catalogue(tmp_path)
    catalogue.add_queries([("a", "SELECT 1", "parquet"), ("b", "SELECT 2", "count")])
    catalogue.drop_query("a")
    catalogue.add_queries([("a", "SELECT 3", "parquet")])
    catalogue.pause({2: "it failed"})
    catalogue.resume("b")
    for opened in (catalogue, Catalogue(tmp_path)):
        running = [
            [query.number for query in opened.running_at(version)]
            for version in range(opened.version + 1)
        ]
        assert running == [[], [2], [2], [2, 3], [3], [2, 3]]
        assert [q.number for q in opened.queries.values() if q.runs_at(1)] == [1, 2]
        assert opened.query("a").text == "SELECT 3"
        assert opened.query("b").error is None


def test_only_paused_queries_are_resumed(tmp_path: pathlib.Path) -> None:
    catalogue = Catalogue(tmp_path)
    catalogue.add_queries([("a", "SELECT 1", "parquet")])
    with pytest.raises(EngineError, match="'a' is not paused"):
        catalogue.resume("a")


def test_wherever_the_file_breaks_off_the_state_before_is_used(tmp_path: pathlib.Path) -> None:
    catalogue = Catalogue(tmp_path)
    for n in range(5):
        catalogue.add_queries([(f"q{n}", "SELECT 'é'", "parquet")])
    whole = (tmp_path / FILE).read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    for length in random.Random(0).sample(range(len(whole)), 40):
        (tmp_path / FILE).write_bytes(whole[:length])
        opened = Catalogue(tmp_path)
        complete = sum(end <= length for end in ends)
        assert opened.names() == [f"q{n}" for n in range(complete)]
        assert (opened.damage is None) == (length in [0, *ends])


def test_a_changed_byte_is_noticed(tmp_path: pathlib.Path) -> None:
    catalogue = Catalogue(tmp_path)
    catalogue.add_queries([("good", "SELECT 1", "parquet")])
    catalogue.add_queries([("bad", "SELECT 2", "parquet")])
    content = (tmp_path / FILE).read_bytes().replace(b"SELECT 2", b"SELECT 3")
    (tmp_path / FILE).write_bytes(content)
    opened = Catalogue(tmp_path)
    assert opened.names() == ["good"]
    assert "line 2" in str(opened.damage)


#: Records as they were written before entries had classes of their own.
WRITTEN_BEFORE = [
    '{"version":1,"kind":"stream","name":"s","about":'
    '{"schema":{"type":"struct","fields":[]},"time":"ts","delay_us":10000000}}',
    '{"version":2,"kind":"table","name":"t","about":'
    '{"schema":{"type":"struct","fields":[]},"fingerprint":[2,"-17"],"version":3}}',
]


def test_streams_and_tables_are_read_and_written_as_before(tmp_path: pathlib.Path) -> None:
    content = "".join(f"{zlib.crc32(text.encode()):08x} {text}\n" for text in WRITTEN_BEFORE)
    (tmp_path / FILE).write_text(content)
    catalogue = Catalogue(tmp_path)
    schema = {"type": "struct", "fields": []}
    assert catalogue.damage is None
    assert catalogue.streams == {"s": StreamEntry(schema, "ts", 10_000_000)}
    assert catalogue.tables == {"t": TableEntry(schema, 2, "-17", 3)}
    (tmp_path / FILE).unlink()
    again = Catalogue(tmp_path)
    again.set_stream("s", catalogue.streams["s"])
    again.set_table("t", catalogue.tables["t"])
    assert (tmp_path / FILE).read_text() == content


def test_an_entry_that_is_in_the_catalogue_is_not_written_again(tmp_path: pathlib.Path) -> None:
    catalogue = Catalogue(tmp_path)
    catalogue.set_stream("s", StreamEntry({}, "ts", 1))
    catalogue.set_stream("s", StreamEntry({}, "ts", 1))
    assert catalogue.version == 1
    catalogue.set_stream("s", StreamEntry({}, "ts", 2))
    assert catalogue.version == 2


def test_one_name_is_given_to_one_of_many_threads(tmp_path: pathlib.Path) -> None:
    catalogue = Catalogue(tmp_path)
    outcomes: list[str] = []

    def add() -> None:
        try:
            catalogue.add_queries([("same", "SELECT 1", "parquet")])
            outcomes.append("added")
        except EngineError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("added") == 1
    assert sum("exists already" in outcome for outcome in outcomes) == 7
    assert len(Catalogue(tmp_path).queries) == 1


def test_what_is_removed_is_gone_after_reopening_and_its_name_is_free(
    tmp_path: pathlib.Path,
) -> None:
    catalogue = Catalogue(tmp_path)
    for name in ("one", "two", "three"):
        catalogue.set_stream(name, StreamEntry({}))
    catalogue.set_table("t", TableEntry({}, 1, "5", 1, {"a.parquet": 7}))
    catalogue.add_function("f")
    registrations = catalogue.registrations
    for what, name in (("stream", "two"), ("table", "t"), ("function", "f")):
        catalogue.remove(what, name)
        with pytest.raises(EngineError, match=f"no {what} '{name}'"):
            catalogue.remove(what, name)
    assert catalogue.registrations == registrations + 3
    catalogue.set_stream("two", StreamEntry({}, "ts"))
    for opened in (catalogue, Catalogue(tmp_path)):
        assert list(opened.streams) == ["one", "three", "two"]
        assert not opened.tables
        assert not opened.functions
        assert opened.table_files == {("t", 1): {"a.parquet": 7}}  # older results may need them


def test_settings_are_kept_and_written_only_when_they_change(tmp_path: pathlib.Path) -> None:
    catalogue = Catalogue(tmp_path)
    assert catalogue.settings is None
    catalogue.set_settings({"zone": "UTC", "legacy": None})
    size = (tmp_path / FILE).stat().st_size
    again = Catalogue(tmp_path)
    again.set_settings({"zone": "UTC", "legacy": None})
    assert (tmp_path / FILE).stat().st_size == size
    again.set_settings({"zone": "Asia/Tokyo"})
    assert Catalogue(tmp_path).settings == {"zone": "Asia/Tokyo"}


def test_a_rewritten_file_has_everything_but_dropped_queries(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_module, "LINES_MIN", 10)
    catalogue = Catalogue(tmp_path)
    catalogue.set_settings({"zone": "UTC", "legacy": None})
    for name in ("one", "two"):
        catalogue.set_stream(name, StreamEntry({"type": "struct"}, "ts", 5))
    for version in (1, 2):
        catalogue.set_table("t", TableEntry({}, 1, "5", version, {f"{version}.parquet": 7}))
    catalogue.add_function("f")
    catalogue.add_queries([(name, f"SELECT '{name}'", "parquet") for name in "abc"])
    catalogue.compact(catalogue.dropped())
    assert len((tmp_path / FILE).read_bytes().splitlines()) == 7  # it would not become shorter
    catalogue.pause({2: "it failed"})
    catalogue.resume("b")
    catalogue.pause({1: "it failed too"})
    for _ in range(6):
        catalogue.drop_query("c")
        catalogue.add_queries([("c", "SELECT 'again'", "count")])
    catalogue.drop_query("c")
    before = Catalogue(tmp_path)
    dropped = catalogue.dropped()
    assert dropped == set(range(3, 10))
    catalogue.compact(dropped - {3})  # of one of them there may still be results
    assert len((tmp_path / FILE).read_bytes().splitlines()) == 1
    for opened in (catalogue, Catalogue(tmp_path)):
        assert opened.damage is None
        assert list(opened.queries) == [1, 2, 3]
        for number in (1, 2, 3):
            assert opened.queries[number] == before.queries[number]
        for name in ("version", "streams", "tables", "table_files", "functions", "settings"):
            assert getattr(opened, name) == getattr(before, name), name
        assert opened.names() == ["a", "b"]
    again = Catalogue(tmp_path)
    (new,) = again.add_queries([("c", "SELECT 1", "parquet")])
    assert new.number == 10  # numbers of forgotten queries are not given out again
    assert Catalogue(tmp_path).names() == ["a", "b", "c"]
    assert Catalogue(tmp_path).version == before.version + 1


def test_a_kill_while_the_file_is_rewritten_leaves_the_old_or_the_new_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_module, "LINES_MIN", 1)

    class KilledError(BaseException):
        pass

    def kill(*_: object) -> None:
        raise KilledError

    for operation in ("open", "fsync", "replace"):
        folder = tmp_path / operation
        folder.mkdir()
        catalogue = Catalogue(folder)
        for name in "abcdef":
            catalogue.add_queries([(name, "SELECT 1", "parquet")])
        for name in "abcde":
            catalogue.drop_query(name)
        with monkeypatch.context() as patch:
            patch.setattr(os, operation, kill)
            with pytest.raises(KilledError):
                catalogue.compact(catalogue.dropped())
        for _ in range(2):
            opened = Catalogue(folder)
            assert opened.damage is None
            assert opened.names() == ["f"]
            opened.compact(opened.dropped())
        assert list(Catalogue(folder).queries) == [6]


def test_a_damaged_state_is_named(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "LINES_MIN", 1)
    catalogue = Catalogue(tmp_path)
    for name in "abc":
        catalogue.add_queries([(name, "SELECT 1", "parquet")])
        catalogue.drop_query(name)
    catalogue.compact(catalogue.dropped())
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(content.replace(b'"largest_number":3', b'"largest_number":1'))
    assert "line 1" in str(Catalogue(tmp_path).damage)
