"""Event times of the streams: the newest seen so far, and the rows that came late."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from eddyline.spark.common.columns import quoted
from eddyline.spark.engine.stream_info import StreamInfo

if TYPE_CHECKING:
    from pyspark.sql import Column

_NEVER_US = -(2**62)
#: Metric with the number of rows of all streams.
ROWS = "rows"


class EventTimes:
    """Follows the event time of every stream that has one.

    Parameters
    ----------
    streams
        The streams of the engine.
    newest_us
        Newest event time of each stream, by name, as of the last finished micro-batch.

    """

    def __init__(self, streams: Sequence[StreamInfo], newest_us: Mapping[str, int]) -> None:
        self._streams = [stream for stream in streams if stream.time is not None]
        self.newest_us = dict(newest_us)
        #: When each stream last had rows, by name, on a clock that only goes forward.
        self._seen_s = {stream.name: time.monotonic() for stream in self._streams}

    def idle(self) -> list[str]:
        """Return the streams that have had no rows for longer than they may."""
        now_s = time.monotonic()
        return [
            stream.name
            for stream in self._streams
            if stream.idle_us is not None
            and now_s - self._seen_s[stream.name] >= stream.idle_us / 1e6
        ]

    def skip_ahead(self, idle: Collection[str], joined: Iterable[Collection[str]]) -> list[str]:
        """Let idle streams hold back no join: as if they had reached what the others have.

        Returns the streams whose time was moved.

        Parameters
        ----------
        idle
            The idle streams.
        joined
            For each join, the streams that it reads.

        """
        delays_us = {stream.name: stream.delay_us for stream in self._streams}
        partners: dict[str, set[str]] = {name: set() for name in idle}
        for streams in joined:
            for name in partners.keys() & set(streams):
                partners[name] |= set(streams) - set(idle)
        moved = []
        for name, others in partners.items():
            reached = [self.newest_us.get(o, _NEVER_US) - delays_us[o] for o in others]
            newest_us = min(reached, default=_NEVER_US) + delays_us[name]
            if newest_us > max(self.newest_us.get(name, _NEVER_US), _NEVER_US + delays_us[name]):
                self.newest_us[name] = newest_us
                moved.append(name)
        return moved

    def metrics(self) -> list[Column]:
        """Return what to observe in a micro-batch; nothing if no stream has an event time."""
        metrics = []
        for stream in self._streams:
            assert stream.time is not None
            # Microseconds, for both kinds of timestamp and any time zone of the session.
            time_us = f"unix_micros(CAST({stream.field}.{quoted(stream.time)} AS TIMESTAMP))"
            oldest_us = self.newest_us.get(stream.name, _NEVER_US) - stream.delay_us
            # A decimal is not part of generated code, which otherwise is compiled for each batch.
            is_late = f"CAST({time_us} AS DECIMAL(20, 0)) - {oldest_us}BD < 0BD"
            metrics.append(F.expr(f"max({time_us}) AS newest_{stream.number}"))
            metrics.append(F.expr(f"count_if({is_late}) AS late_{stream.number}"))
        return [*metrics, F.expr(f"count(*) AS {ROWS}")] if metrics else []

    def advance(self, observed: Mapping[str, Any]) -> int:
        """Take over what was observed; return the number of late rows."""
        late = 0
        for stream in self._streams:
            newest_us = observed.get(f"newest_{stream.number}")
            if newest_us is not None:
                self._seen_s[stream.name] = time.monotonic()
                before_us = self.newest_us.get(stream.name, newest_us)
                self.newest_us[stream.name] = max(before_us, newest_us)
                late += observed[f"late_{stream.number}"]
        return late
