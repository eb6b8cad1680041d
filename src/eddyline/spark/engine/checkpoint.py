"""What Spark's checkpoint says of a micro-batch: which rows it reads, and whether it is committed.

Spark numbers micro-batches by itself. If its checkpoint is lost, deleted or older than the results,
a number that the engine has finished stands for other rows. So the engine keeps a fingerprint of
what the checkpoint said with every record, and compares.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import pathlib
import shutil
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

#: Micro-batches that Spark keeps in the checkpoint; an engine needs the last two. What file sources
#: note of each is merged by Spark every tenth time, and deleted then instead of 10 minutes later.
SHORT_HISTORY = {
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "0ms",
}

SOURCES_WAIT_S, POLL_S = 10.0, 0.02


@contextlib.contextmanager
def short_history(spark: SparkSession) -> Iterator[None]:
    """Let a query that is started meanwhile keep few micro-batches in its checkpoint.

    What the session says itself holds.
    """
    unset = [key for key in SHORT_HISTORY if spark.conf.get(key, None) is None]
    for key in unset:
        spark.conf.set(key, SHORT_HISTORY[key])
    try:
        yield
    finally:
        for key in unset:
            spark.conf.unset(key)


def await_sources(query: StreamingQuery) -> None:
    """Wait until a query that was just started has made its sources, which read the settings."""
    until_s = time.monotonic() + SOURCES_WAIT_S
    while query.isActive and str(query.status["message"]).startswith("Initializing"):
        if time.monotonic() > until_s:
            return
        time.sleep(POLL_S)


class Checkpoint:
    """The checkpoint folder of one engine.

    Parameters
    ----------
    path
        The folder that Spark was given as checkpoint location.

    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def fingerprint(self, batch: int) -> str:
        """Return a text that differs if the micro-batch reads other rows.

        It covers the identity of the checkpoint, the offsets of all sources, and for file sources
        the list of files behind an offset.
        """
        digest = hashlib.sha256()
        for part in self._parts(batch):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.hexdigest()

    def _parts(self, batch: int) -> Iterator[bytes]:
        yield _content(self.path / "metadata")
        # The first line is the version of the format, the second has times and settings.
        offsets = _content(self.path / "offsets" / str(batch)).splitlines()[2:]
        for source, offset in enumerate(offsets):
            yield offset
            entry = _log_entry(offset)
            if entry is not None:
                log = self.path / "sources" / str(source)
                yield _content(log / entry) or _content(log / f"{entry}.compact")

    def committed(self) -> list[int]:
        """Return the micro-batches that Spark will not run again."""
        return self._numbers("commits")

    def planned(self) -> list[int]:
        """Return the micro-batches that Spark has chosen the rows of."""
        return self._numbers("offsets")

    def delete(self) -> None:
        """Delete it, so that Spark reads all sources from where they begin."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _numbers(self, log: str) -> list[int]:
        names = [path.name for path in (self.path / log).glob("*")]
        return [int(name) for name in names if name.isdigit()]


def _content(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _log_entry(offset: bytes) -> str | None:
    """Return the entry of a file source's log that an offset points to; None for others."""
    try:
        plain = json.loads(offset)
    except ValueError:
        return None
    if not isinstance(plain, dict) or "logOffset" not in plain:
        return None
    return str(plain["logOffset"])
