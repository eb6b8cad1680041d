"""`eddyline doctor`: checks of everything that Spark and Eddyline need on this machine."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata

from rich.console import Console
from rich.table import Table

from eddyline.report.text import plain

JAVA_MIN = 17
JAVA_MODULE = "jdk.incubator.vector"
GET_JAVA = (
    "install Java 17 or newer: Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless; "
    "Fedora: sudo dnf install java-17-openjdk-headless; macOS: brew install openjdk@17. If several "
    "versions are installed, set JAVA_HOME to the folder of the one to use"
)


@dataclass(frozen=True)
class Check:
    """One check: what was examined, what was found, and the fix if that is wrong."""

    what: str
    found: str
    ok: bool
    fix: str = ""


def examine() -> list[Check]:
    """Run all checks; nothing is started except Java and the Python of the workers."""
    return [
        _python(),
        *_java(),
        _package("pyspark", (4, 1), None, 'pip install "eddyline[spark]"'),
        _package("pyarrow", (18,), None, 'pip install "pyarrow>=18"'),
        _package("pandas", (2, 2), (3,), 'pip install "pandas>=2.2,<3"'),
        _package("numpy", (1, 26), None, 'pip install "numpy>=1.26"'),
        _connect(),
        _worker_python(),
    ]


def show(checks: list[Check], console: Console | None = None) -> None:
    """Print the checks, and below them the fixes."""
    console = console or Console()
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        mark = plain("ok", "green") if check.ok else plain("wrong", "bold red")
        table.add_row(mark, plain(check.what), plain(check.found))
    console.print(table)
    wrong = [check for check in checks if not check.ok]
    for check in wrong:
        console.print(plain(f"{check.what}: {check.fix}"))
    if not wrong:
        console.print("Everything is in place.")


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check("Python", found, sys.version_info >= (3, 11), "use Python 3.11 or newer")


def _java() -> list[Check]:
    home = os.environ.get("JAVA_HOME")
    java = str(pathlib.Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not pathlib.Path(java).exists():
        found = f"nothing at {java}, where JAVA_HOME points" if home else "not on the PATH"
        return [Check("Java", found, False, GET_JAVA)]
    output = _run_java(java, "-version")
    version = re.search(r'version "(\d+)[^"]*"', output)
    if version is None:
        return [Check("Java", output.strip()[:80] or "prints no version", False, GET_JAVA)]
    checks = [Check("Java", version.group(0)[9:-1], int(version.group(1)) >= JAVA_MIN, GET_JAVA)]
    has_module = JAVA_MODULE in _run_java(java, "--list-modules")
    checks.append(
        Check(
            f"Java module {JAVA_MODULE}",
            "present" if has_module else "missing",
            has_module,
            "this Java was built without it and cannot start Spark 4; " + GET_JAVA,
        )
    )
    return checks


def _run_java(java: str, option: str) -> str:
    try:
        run = subprocess.run(
            [java, option], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return run.stdout + run.stderr


def _package(
    name: str, at_least: tuple[int, ...], below: tuple[int, ...] | None, fix: str
) -> Check:
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, "not installed", False, fix)
    version = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    ok = version >= at_least and (below is None or version < below)
    return Check(name, found, ok, fix)


def _connect() -> Check:
    """Return a check that never fails, since Spark Connect is optional."""
    missing = []
    for name in ("grpcio", "grpcio-status", "googleapis-common-protos"):
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        found = f"not available, {', '.join(missing)} missing (pip install 'pyspark[connect]')"
        return Check("Spark Connect", found, True)
    return Check("Spark Connect", "available", True)


def _worker_python() -> Check:
    """Check that workers run this Python, which has the packages; the default is `python3`."""
    given = os.environ.get("PYSPARK_PYTHON")
    worker = shutil.which(given or "python3")
    fix = f"export PYSPARK_PYTHON={sys.executable}"
    what = "PYSPARK_PYTHON"
    if worker is None:
        return Check(what, f"{given} does not exist", False, fix)
    same = pathlib.Path(worker).resolve() == pathlib.Path(sys.executable).resolve()
    if same and _prefix_of(worker) == sys.prefix:
        return Check(what, given or f"not set; python3 is {worker}", True)
    found = f"{given or 'not set; python3 is ' + worker}: not the Python that runs this"
    return Check(what, found, False, fix)


def _prefix_of(python: str) -> str:
    try:
        run = subprocess.run(
            [python, "-c", "import sys; print(sys.prefix)"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip()
