"""One Spark session for all tests and examples, and the marker of everything that needs it."""

from __future__ import annotations

import ast
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# A loaded machine is no reason for a test to fail.
settings.register_profile("eddyline", deadline=None)
settings.load_profile("eddyline")
os.environ["PYSPARK_PYTHON"] = sys.executable
SPARK_TESTS = pathlib.Path(__file__).parent / "tests" / "spark"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    from eddyline import Engine

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
    Engine.start.__defaults__ = ("0 seconds",)  # tests need not wait for the next second
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _spark_in_doctests(request: pytest.FixtureRequest) -> None:
    """Give examples that use the name `spark` the session of the tests."""
    if isinstance(request.node, pytest.DoctestItem) and _names_spark(request.node):
        request.node.dtest.globs["spark"] = request.getfixturevalue("spark")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs Spark: `-m "not spark"` then runs without a JVM."""
    for item in items:
        if SPARK_TESTS in item.path.parents or _uses_session(item):
            item.add_marker(pytest.mark.spark)


def _uses_session(item: pytest.Item) -> bool:
    if isinstance(item, pytest.DoctestItem):
        return _names_spark(item)
    return "spark" in getattr(item, "fixturenames", ())


def _names_spark(item: pytest.DoctestItem) -> bool:
    """Whether an example uses the name `spark`, rather than the word in a string or a module."""
    return item.dtest is not None and any(
        isinstance(node, ast.Name) and node.id == "spark"
        for example in item.dtest.examples
        for node in ast.walk(ast.parse(example.source))
    )
