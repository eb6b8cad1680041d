"""Settings of a session for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def session_settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a session, and set them back afterwards.

    Parameters
    ----------
    spark
        The session.
    values
        The settings, by name.

    Examples
    --------
    >>> name = "spark.sql.adaptive.enabled"
    >>> before = spark.conf.get(name)
    >>> with session_settings(spark, {name: "false"}):
    ...     spark.conf.get(name)
    'false'
    >>> spark.conf.get(name) == before
    True

    """
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, known in before.items():
            spark.conf.unset(key) if known is None else spark.conf.set(key, known)
