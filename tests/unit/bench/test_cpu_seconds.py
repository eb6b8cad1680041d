"""CPU time of this process and of those below it."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from eddyline.bench.cpu_time import cpu_seconds

BUSY = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="Linux only")
def test_processes_below_count_also_when_they_have_ended() -> None:
    before = cpu_seconds()
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    after = cpu_seconds()
    assert before is not None
    assert after is not None
    assert after - before > 0.25  # counted in hundredths of a second
