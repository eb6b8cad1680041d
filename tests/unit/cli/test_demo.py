"""`eddyline demo`, as a user with a terminal of 80 columns sees it."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest


@pytest.mark.spark
@pytest.mark.spark
def test_demo_follows_the_drift_and_fits_80_columns(tmp_path) -> None:
    page = tmp_path / "report.html"
    run = subprocess.run(
        [sys.executable, "-m", "eddyline.cli.main", "demo", "--rows=24000", f"--html={page}"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "COLUMNS": "80"},
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    line = r"^ +([123]) +8,000 +32,000 → ([\d,]+) +[\d.]+ → [\d.]+ +(\w+)"
    phases = re.findall(line, run.stdout, re.MULTILINE)
    assert [number for number, *_ in phases] == ["1", "2", "3"]
    assert phases[-1][-1] == "mark2"  # the selective one of the last phase comes first
    assert all(int(done.replace(",", "")) < 32_000 for _, done, _ in phases)
    assert "changed to mark3" in run.stdout
    assert len(re.findall(r"^- (?:changed|went|the rows|found)", run.stdout, re.MULTILINE)) <= 3
    assert "times fewer evaluations, " in run.stdout
    assert "1,001 queries" in run.stdout
    assert "- query hot" in run.stdout
    kept = re.findall(r"^ *(engine|Spark's chain) +([\d,]+) +([\d,]+)", run.stdout, re.MULTILINE)
    (_, results, rows), (_, same, more) = kept
    assert results == same
    assert int(more.replace(",", "")) > int(rows.replace(",", ""))
    assert "Report written to " in run.stdout
    assert max(len(line) for line in run.stdout.split("\n")) <= 80
    assert "<table>" in pathlib.Path(page).read_text(encoding="utf-8")
