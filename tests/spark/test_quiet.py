"""Actions that need only some rows leave nothing on the console."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def test_no_tracebacks_of_workers_whose_output_is_not_read_to_the_end() -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    run = subprocess.run(
        [sys.executable, "-m", "tests.spark.quiet_script"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert "Traceback" not in run.stderr
    assert "Error" not in run.stderr
