"""A fingerprint changes with whatever a function consists of, and with nothing else."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from eddyline.spark.where.fingerprint import fingerprint


@dataclass
class Limit:
    value: int

    def keeps(self, a: int) -> bool:
        return a > self.value

    def __call__(self, a: int) -> bool:
        return a > self.value


def closing_over(value: Any) -> Callable[[int], bool]:
    return lambda a: a in value


def with_default(value: int) -> Callable[..., bool]:
    def keeps(a: int, limit: int = value) -> bool:
        return a > limit

    return keeps


def wrapping(function: Callable[[int], bool]) -> Callable[[int], bool]:
    @functools.wraps(function)
    def wrapper(a: int) -> bool:
        return function(a)

    return wrapper


VARIANTS: dict[str, Callable[[int], Callable[..., Any]]] = {
    "values closed over": lambda n: closing_over([n]),
    "sets closed over": lambda n: closing_over({n, n + 1, "x"}),
    "mappings closed over": lambda n: closing_over({"a": n}),
    "patterns closed over": lambda n: closing_over(re.compile("x" * (n + 1))),
    "default arguments": with_default,
    "arguments of a partial": lambda n: functools.partial(with_default(0), limit=n),
    "the function that is wrapped": lambda n: wrapping(with_default(n)),
    "the object of a method": lambda n: Limit(n).keeps,
    "an object that is called": Limit,
}


@pytest.mark.parametrize("make", VARIANTS.values(), ids=VARIANTS)
def test_it_changes_with(make: Callable[[int], Callable[..., Any]]) -> None:
    assert fingerprint(make(0)) == fingerprint(make(0))
    assert fingerprint(make(0)) != fingerprint(make(1))


def test_a_function_that_calls_itself_has_one() -> None:
    def count(a: int) -> int:
        return 0 if a == 0 else 1 + count(a - 1)

    assert len(fingerprint(count)) == 16


def test_it_is_the_same_in_every_process() -> None:
    code = (
        "from eddyline.spark.where.fingerprint import fingerprint\n"
        "def closing_over(value):\n    return lambda a: a in value\n"
        "print(fingerprint(closing_over({'x', 'y', 'z', object})))"
    )
    seen = set()
    for seed in "12":
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        seen.add(done.stdout)
    assert len(seen) == 1


def test_functions_without_code_of_their_own_have_one() -> None:
    assert fingerprint(len) != fingerprint(abs)
    assert fingerprint("a".startswith) != fingerprint("a".endswith)
