"""`eddyline demo`: drift, rows of several kinds, a thousand queries at once, and a join."""

from __future__ import annotations

import logging
import pathlib
import shutil
import tempfile

from rich.console import Console

from eddyline.bench.harness import local_spark
from eddyline.cli.demo.classes import find_classes
from eddyline.cli.demo.drift import follow_drift
from eddyline.cli.demo.joins import join_streams
from eddyline.cli.demo.queries import share_queries
from eddyline.errors import EddylineError

FREE_BYTES_MIN = 500_000_000


def run(rows: int, seed: int, html: pathlib.Path | None) -> None:
    """Run the four parts on an embedded Spark, with generated data.

    Parameters
    ----------
    rows
        Rows of the drifting stream; the other parts are scaled with it.
    seed
        Seed of everything random.
    html
        File for the report of the first part, as a page.

    """
    free_bytes = shutil.disk_usage(tempfile.gettempdir()).free
    if free_bytes < FREE_BYTES_MIN:
        raise EddylineError(
            f"less than {FREE_BYTES_MIN // 10**6} MB free in {tempfile.gettempdir()}; free some "
            f"space there, or set TMPDIR to another folder"
        )
    console = Console()
    with tempfile.TemporaryDirectory(prefix="eddyline-demo-") as name:
        folder = pathlib.Path(name)
        with console.status("starting an embedded Spark ..."):
            spark = local_spark("2g")
            logging.getLogger("py4j").setLevel(logging.CRITICAL)
        try:
            follow_drift(console, spark, folder, rows, seed, html)
            find_classes(console, spark, folder, rows // 2, seed)
            share_queries(console, spark, folder, 2 * rows, seed)
            join_streams(console, spark, folder, rows // 12)
        finally:
            spark.stop()
