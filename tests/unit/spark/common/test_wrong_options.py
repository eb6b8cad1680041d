"""Options of the wrong type are refused where they are given, by name and with the fix."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import numpy as np
import pytest

import eddyline as el
from eddyline.fabric import RouterOptions


def is_long(text: str) -> bool:
    return len(text) > 9


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "name of el.udf": (lambda: el.udf(is_long, "t", name=5), r"el.udf\(name=5\): .* not int"),
    "name of el.expr": (lambda: el.expr("a > 1", name=3), r"el.expr\(name=3\): .* not int"),
    "name of el.shared": (lambda: el.shared(is_long, "t", name=1), r"el.shared\(name=1\)"),
    "deterministic": (
        lambda: el.udf(is_long, "t", deterministic="no"),
        "deterministic='no': it must be True, False or None",
    ),
    "may_fail": (lambda: el.expr("a > 1", may_fail="no"), "may_fail='no': it must be"),
    "a list of predicates": (lambda: el.where(["a > 1", "b > 2"]), r"unpack it: el.where\(\*"),
    "budget": (lambda: el.where("a > 1", budget="1%"), "budget is '1%'; it must be a number"),
    "seed": (lambda: el.where("a > 1", seed="a"), "seed is 'a'; it must be a whole number"),
    "memory": (lambda: el.where("a > 1", memory=5), "memory=5 is not a path"),
}


@pytest.mark.parametrize(("make", "message"), WRONG.values(), ids=WRONG)
def test_it_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(el.EddylineError, match=message):
        make()


def test_a_folder_is_no_memory(tmp_path: pathlib.Path) -> None:
    with pytest.raises(el.EddylineError, match=r"is a folder; give .*filter\.json"):
        el.where("a > 1", memory=tmp_path)


def test_error_of_something_that_is_no_exception() -> None:
    with pytest.raises(TypeError, match="needs an exception, not str"):
        el.error_of("text")


def test_a_seed_of_numpy_is_one() -> None:
    assert RouterOptions(seed=np.int64(3)).seed == 3
