"""One Spark session for all tests, and for the examples in docstrings and in the README."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

os.environ["PYSPARK_PYTHON"] = sys.executable


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("eddyline tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _spark_in_doctests(request: pytest.FixtureRequest) -> None:
    """Give an example that mentions `spark` the session of the tests."""
    item = request.node
    if not isinstance(item, pytest.DoctestItem) or item.dtest is None:
        return
    if any("spark" in example.source for example in item.dtest.examples):
        item.dtest.globs["spark"] = request.getfixturevalue("spark")
