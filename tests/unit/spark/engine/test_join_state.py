"""Join state over many micro-batches: what is merged, purged, left behind, lost and given up."""

from __future__ import annotations

import pathlib
import re

import pytest

from eddyline.journal.events import StateLost
from eddyline.spark.engine import housekeeping, join_runner
from eddyline.spark.state import compaction
from eddyline.spark.state.state_file import StateFileError
from tests.unit.joins.oracle import Row
from tests.unit.spark.engine.join_site import DELAY_US, JoinSite, Workload, tidy_often

BATCHES = 12


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    tidy_often(monkeypatch)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload(4, seed=4)


@pytest.mark.parametrize("seed", range(3))
def test_neither_compaction_nor_purging_changes_a_result(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    workload = Workload(BATCHES, seed)
    rows = {}
    for fan_in in (2, 3, 1_000):
        monkeypatch.setattr(compaction, "FAN_IN", fan_in)
        site = JoinSite(tmp_path / str(fan_in), tasks=1)
        for batch, own in enumerate(workload.rows):
            site.run(batch, own)
        site.check(workload, len(workload.rows))
        rows[fan_in] = site.runner._joins.state.rows
        tiers = {file["tier"] for file in site.folder.log.state.containers.values()}
        assert (max(tiers) > 0) == (fan_in < 1_000)
        assert not any(name.startswith("0-") for name in site.folder.log.state.containers)
        site.end()
    assert rows[2] < rows[1_000]  # a merge leaves out what no query needs


def test_a_row_is_kept_exactly_as_long_as_a_partner_may_come(
    tmp_path: pathlib.Path,
) -> None:
    """A window of 7 us: the partner comes 6 us later, when rows before it are late already."""
    site, wanted = JoinSite(tmp_path / "engine", tasks=1), {0: frozenset([5])}
    site.queries = {5: site.queries[5]}
    newest_us = 106 + DELAY_US

    def run(batch: int, *rows: tuple[int, int, int, int]) -> None:
        made = {
            n: [Row(id_, 0, (key,), t, wanted) for own, id_, key, t in rows if own == n]
            for n in range(3)
        }
        site.run(batch, made)

    run(0, (0, 1, 1, 100), (0, 2, 1, 99))
    run(1, (0, 3, 2, newest_us), (1, 4, 3, newest_us))
    assert site.runner._joins.state.rows == 4
    run(2, (0, 5, 2, newest_us))  # merges what the first two have stored
    assert site.runner._joins.state.rows == 4  # without the row at 99
    run(3, (1, 6, 1, 106))
    assert site.found(5) == [(1, 6)]
    run(4, (0, 7, 2, newest_us + 8), (1, 8, 3, newest_us + 8))
    run(5, (0, 9, 2, newest_us + 8))
    assert not {"0", "1", "3"} & {n[0] for n in site.folder.log.state.containers}
    site.end()


def test_containers_of_tasks_that_failed_do_not_pile_up(
    tmp_path: pathlib.Path, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_runner, "LEFTOVERS_EVERY", 2)
    site = JoinSite(tmp_path / "engine")
    site.run(0, workload.rows[0])
    leftover = site.path / "state" / "0-1-123456789abc.stem"
    leftover.write_bytes(b"of an attempt that was given up")
    site.run(1, workload.rows[1])
    site.check(workload, 2)
    assert not leftover.exists()
    site.end()


# --- missing and damaged files --------------------------------------------------------------------


@pytest.mark.parametrize("is_missing", [True, False])
def test_lost_state_is_named_and_can_be_given_up(
    tmp_path: pathlib.Path, workload: Workload, is_missing: bool
) -> None:
    site = JoinSite(tmp_path / "engine", tasks=1)
    for batch in range(3):
        site.run(batch, workload.rows[batch])
    name = next(name for name in site.folder.log.state.containers if name.startswith("2-"))
    path = site.path / "state" / name
    if is_missing:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    says = rf"{name}, which micro-batch 2 wrote, is (missing|damaged); restore .* repair=True"
    site.end()
    site.open()
    with pytest.raises(StateFileError, match=says):
        site.run(3, workload.rows[3])
    site.end()
    site.open(repair=True)
    (lost,) = site.folder.journal.of(StateLost)
    assert re.search(says, lost.event.sentence())
    site.end()
    site.open()
    site.run(3, workload.rows[3])
    assert set(site.found(5)) < set(workload.answer(5, 4))
    site.end()


def test_state_that_a_lost_record_had_removed_is_given_up_with_it(
    tmp_path: pathlib.Path, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a repaired engine would ask for files that were deleted for good."""
    monkeypatch.setattr(housekeeping, "SNAPSHOT_EVERY", 100)
    site = JoinSite(tmp_path / "engine", tasks=1)
    for batch in range(3):
        site.run(batch, workload.rows[batch])
    record = site.folder.log.record(2)
    assert record is not None
    assert record.state_removed
    site.end()
    (site.path / "batches" / "2.json").unlink()
    (site.path / "checkpoint" / "commits").mkdir(parents=True)
    (site.path / "checkpoint" / "commits" / "2").touch()
    site.open(repair=True)
    assert len(site.folder.journal.of(StateLost)) == len(record.state_removed)
    site.run(3, workload.rows[3])
    site.end()
