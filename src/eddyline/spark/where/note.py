"""What a worker notes about its router, for the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from eddyline.errors import EddylineError
from eddyline.fabric import Router, Totals
from eddyline.fabric.knowledge import Knowledge, knowledge_from_dict
from eddyline.journal import Record

RECORDS_MAX = 40


@dataclass(frozen=True)
class WorkerNote:
    """What a router did since the last note, and what it knows now.

    Parameters
    ----------
    worker
        Identifies the worker process.
    totals
        Sums since the last note.
    knowledge
        What each segment has learnt so far; empty in notes that leave it out.
    records
        The newest records of the journal since the last note.
    records_left_out
        Number of older records that the note has no room for.

    """

    version: ClassVar[int] = 2

    worker: str
    totals: Totals
    knowledge: tuple[Knowledge, ...] = ()
    records: tuple[Record, ...] = ()
    records_left_out: int = 0

    @classmethod
    def take(cls, router: Router, worker: str, with_knowledge: bool = True) -> WorkerNote:
        """Return what a router did since the last note; it starts to count again from zero."""
        records = tuple(router.journal)
        note = cls(
            worker,
            router.totals.take(),
            router.snapshot() if with_knowledge else (),
            records[-RECORDS_MAX:],
            max(0, len(records) - RECORDS_MAX) + router.journal.forgotten,
        )
        router.journal.clear()
        return note

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that fit into JSON."""
        return {
            "version": self.version,
            "worker": self.worker,
            "totals": self.totals.to_dict(),
            "knowledge": [part.to_dict() for part in self.knowledge],
            "records": [record.to_dict() for record in self.records],
            "records_left_out": self.records_left_out,
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> WorkerNote:
        """Read what `to_dict` wrote."""
        if plain["version"] != cls.version:
            raise EddylineError(
                f"a worker sent a note of version {plain['version']}, the driver reads version "
                f"{cls.version}; install the same Eddyline on driver and workers"
            )
        return cls(
            plain["worker"],
            Totals.from_dict(plain["totals"]),
            tuple(knowledge_from_dict(part) for part in plain["knowledge"]),
            tuple(Record.from_dict(record) for record in plain["records"]),
            plain["records_left_out"],
        )
