"""A mapping by number does what a dict does, in less memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from eddyline.spark.engine.numbered import Numbered


@pytest.mark.parametrize("seed", range(5))
def test_it_does_what_a_dict_does(seed: int) -> None:
    rng = random.Random(seed)
    own: Numbered[str] = Numbered()
    expected: dict[int, str] = {}
    for step in range(2_000):
        number = rng.choice([rng.randrange(-700, 700), rng.randrange(10**6)])
        if rng.random() < 0.6:
            own[number] = expected[number] = str(step)
        elif number in expected:
            del own[number], expected[number]
        else:
            with pytest.raises(KeyError):
                del own[number]
        assert (number in own) == (number in expected)
        assert own.get(number) == expected.get(number)
        assert len(own) == len(expected)
    assert dict(own) == dict(own.items()) == expected
    assert sorted(own.values()) == sorted(own.listed()) == sorted(expected.values())
    own.clear()
    assert not own._chunks  # nothing is kept of numbers that are gone


def test_numbers_in_a_row_take_less_than_nine_bytes_each() -> None:
    value = object()
    tracemalloc.start()
    kept = Numbered((number, value) for number in range(100_000))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept) == 100_000
    assert taken / 100_000 < 9
