"""The public names, and that a new worker does not import what only the driver needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import eddyline as el


def test_every_public_name_is_there() -> None:
    for name in el.__all__:
        assert getattr(el, name) is not None
        assert name in dir(el)


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match="module 'eddyline' has no attribute 'were'"):
        el.were  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("module", ["eddyline.spark.where.worker", "eddyline.spark.engine.worker"])
def test_a_worker_imports_neither_the_sql_parser_nor_reports_nor_the_driver(module: str) -> None:
    source = f"import sys, {module}; print(*sys.modules)"
    imported = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    ).stdout.split()
    assert module in imported
    unwanted = {"sqlglot", "rich", "eddyline.report.model", "eddyline.spark.where.where"}
    assert not unwanted & {*imported}
