"""Rows come in slices whose matches fit into memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eddyline.bench.joins_workload import run_of
from eddyline.joins import drop_probing
from eddyline.joins.join import Join
from eddyline.joins.plan import JoinQuery, KeyRef, Role


@pytest.mark.parametrize("partners", [2, 1_000])
def test_rows_with_many_partners_come_in_small_slices(
    monkeypatch: pytest.MonkeyPatch, partners: int
) -> None:
    sizes: list[int] = []
    find = drop_probing.find_matches

    def finding(*args: Any) -> Any:
        found = find(*args)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(drop_probing, "find_matches", finding)
    roles = (Role(0), Role(1))
    equal = (frozenset(KeyRef(role, 0) for role in roles),)
    join = Join([JoinQuery(0, roles, equal, dict.fromkeys(roles, 10**9))], classes=None)
    keys = np.arange(5)
    results: list[int] = []
    join.run({0: run_of(np.repeat(keys, partners))}, lambda found: results.append(len(found)))
    join.run({1: run_of(np.resize(keys, 600))}, lambda found: results.append(len(found)))
    assert sum(results) == sum(sizes) == 600 * partners
    assert max(sizes) <= drop_probing.MATCHES_MAX
    assert len(sizes) <= (20 if partners == 1_000 else 4)  # and no smaller than they need to be
