"""The file in which a filter keeps what it has learnt: used, or ignored with a warning."""

from __future__ import annotations

import json
import threading
import warnings

import numpy as np
import pytest

import eddyline as el
from eddyline.fabric.knowledge import OrderKnowledge
from eddyline.spark.where import memory as memory_module
from eddyline.spark.where.memory import Memory
from eddyline.spark.where.stages import Stages

LEARNT = (OrderKnowledge((1, 0), (2.0, 1.0), np.array([[True, False]] * 3)),)


def memory(path, limit=2, policy="auto", name="big") -> Memory:
    big = [lambda a: a > 2, lambda a: a > 3][limit - 2]
    predicates = [el.udf(big, "a", name=name), el.udf(lambda a: a % 2 == 0, "a", name="even")]
    return Memory(path, Stages.of(predicates), policy)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.json"


def test_what_was_saved_is_loaded(path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert memory(path).load() == ()  # the first time there is no file
        memory(path).save(LEARNT)
        assert memory(path).load() == LEARNT


@pytest.mark.parametrize(
    "other", [{"limit": 3}, {"policy": "sweep"}, {"name": "large"}, {"policy": el.MeshOptions()}]
)
def test_other_predicates_or_another_policy(path, other) -> None:
    memory(path).save(LEARNT)
    with pytest.warns(UserWarning, match="is ignored: the predicates or the policy have changed"):
        assert memory(path, **other).load() == ()


def test_a_file_of_another_version(path) -> None:
    path.write_text(json.dumps({"version": 99}))
    with pytest.warns(UserWarning, match="it has version 99, not 1"):
        assert memory(path).load() == ()


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_damaged_file(path, cut: int) -> None:
    memory(path).save(LEARNT)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.warns(UserWarning, match="it is damaged"):
        assert memory(path).load() == ()


@pytest.mark.parametrize("text", ["", "[]", "null", '{"version": 1}', "\x00", '"text"'])
def test_something_else(path, text: str) -> None:
    path.write_text(text)
    with pytest.warns(UserWarning, match="it is damaged"):
        assert memory(path).load() == ()


def test_a_stream_writes_at_most_every_ten_seconds(path, monkeypatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(memory_module.time, "monotonic", lambda: clock[0])
    kept, later = memory(path), (OrderKnowledge((0, 1), (2.0, 1.0), np.zeros((0, 2), bool)),)
    kept.save(LEARNT, at_once=False)
    clock[0] = 109.0
    kept.save(later, at_once=False)
    assert memory(path).load() == LEARNT
    clock[0] = 110.0
    kept.save(later, at_once=False)
    assert memory(path).load() == later
    kept.save(LEARNT)  # at the end of a program, whenever that is
    assert memory(path).load() == LEARNT


def test_an_altered_order_is_not_believed(path) -> None:
    memory(path).save(LEARNT)
    path.write_text(path.read_text().replace('"order":[1,0]', '"order":[1,1]'))
    with pytest.warns(UserWarning, match="it is damaged"):
        assert memory(path).load() == ()
    memory(path).save([OrderKnowledge((1, 1), (2.0, 1.0), np.zeros((0, 2), dtype=bool))])
    with pytest.warns(UserWarning, match="it is damaged"):
        assert memory(path).load() == ()


def test_several_writers_leave_a_whole_file_and_nothing_else(path) -> None:
    def write() -> None:
        own = memory(path)
        for _ in range(20):
            own.save(LEARNT)
            assert memory(path).load() == LEARNT

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.name for entry in path.parent.iterdir()] == ["memory.json"]
    assert memory(path).load() == LEARNT


def test_a_place_that_cannot_be_written(tmp_path) -> None:
    nowhere = memory(tmp_path / "missing" / "memory.json")
    with pytest.warns(UserWarning, match="what was learnt is not kept: cannot write"):
        nowhere.save(LEARNT)
    with pytest.raises(el.EddylineError, match="is an address"):
        memory("s3://bucket/memory.json")
