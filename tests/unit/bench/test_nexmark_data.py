"""NEXMark data: proportions, ids that go on, references that exist."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.bench.nexmark_data import BATCH_US, FIRST_ID, Events, make_events


def numbers(table: pa.Table, column: str) -> np.ndarray:
    values = table[column]
    return values.cast(pa.int64()).to_numpy()


def batches(seed: int = 0) -> list[Events]:
    rng = np.random.default_rng(seed)
    return [make_events(rng, batch, 5_000) for batch in range(3)]


def test_proportions_and_ids_go_on_from_batch_to_batch() -> None:
    made = batches()
    for each in made:
        counts = (each.persons.num_rows, each.auctions.num_rows, each.bids.num_rows)
        assert counts == (100, 300, 4_600)
    persons = np.concatenate([numbers(each.persons, "id") for each in made])
    auctions = np.concatenate([numbers(each.auctions, "id") for each in made])
    assert persons.tolist() == list(range(FIRST_ID, FIRST_ID + 300))
    assert auctions.tolist() == list(range(FIRST_ID, FIRST_ID + 900))
    for name in ("persons", "auctions", "bids"):
        times = np.concatenate([numbers(getattr(each, name), "ts") for each in made])
        assert (np.diff(times) > 0).all()
        assert times[-1] - times[0] < 3 * BATCH_US


def test_references_are_to_rows_that_came_before() -> None:
    made = batches()
    opened = np.concatenate([numbers(each.auctions, "ts") for each in made])
    came = np.concatenate([numbers(each.persons, "ts") for each in made])
    for each in made:
        bids, auctions = each.bids, each.auctions
        assert (opened[numbers(bids, "auction") - FIRST_ID] < numbers(bids, "ts")).all()
        assert (came[numbers(bids, "bidder") - FIRST_ID] < numbers(bids, "ts")).all()
        assert (came[numbers(auctions, "seller") - FIRST_ID] < numbers(auctions, "ts")).all()


def test_half_of_the_bids_go_to_hot_auctions() -> None:
    bids = batches()[2].bids
    is_hot = (numbers(bids, "auction") - FIRST_ID) % 100 == 0
    assert 0.45 < is_hot.mean() < 0.55


def test_a_seed_gives_the_same_rows() -> None:
    assert batches(3) == batches(3)
    assert batches(3) != batches(4)
