"""The catalogue and the log of micro-batches, as files."""

from __future__ import annotations

import pathlib
import random
import threading
import zlib

import pytest

from eddyline.errors import EngineError
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
