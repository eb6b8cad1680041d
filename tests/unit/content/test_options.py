"""Options of content-based routing do what they say, apart from the paper's set of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.content import ContentLearns, ContentOptions
from eddyline.content.learns import NO_ATTRIBUTE
from eddyline.fabric.tactics.content_routes import PartitionedAttributes
from eddyline.operators import Batch, ColumnReader


@pytest.mark.parametrize("beyond_chance", [True, False])
def test_a_gain_counts_only_beyond_chance_unless_asked_for(beyond_chance: bool) -> None:
    options = ContentOptions(sample_rows=400, gain_ratio_min=0.0, beyond_chance=beyond_chance)
    content = ContentLearns(operators=2, attributes=1, options=options)
    rng = np.random.default_rng(0)
    content.sample(rng.integers(0, 24, (1, 400)), passed=rng.random(400) < 0.5)
    assert (content.conclude() == NO_ATTRIBUTE) is beyond_chance


@pytest.mark.parametrize(("cut_by", "largest_at_most"), [("frequency", 0.3), ("width", 1.0)])
def test_ranges_have_as_many_rows_or_the_same_width(cut_by, largest_at_most: float) -> None:
    values = pa.array(np.random.default_rng(0).random(2_000) ** 16)  # most of them are near 0
    options = ContentOptions(partitions=4, values_max=0, cut_by=cut_by)
    attributes = PartitionedAttributes({"a": 0}, options)
    batch, rows = Batch([values], [ColumnReader("a")]), np.arange(2_000)
    attributes.look(batch, rows)
    partitions = attributes.partition(batch, rows, [0])[0]
    assert largest_at_most - 0.2 < np.bincount(partitions).max() / 2_000 <= largest_at_most
