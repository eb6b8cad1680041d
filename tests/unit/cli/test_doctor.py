"""`eddyline doctor` on good and bad machines."""

from __future__ import annotations

import io
import sys

from rich.console import Console
from typer.testing import CliRunner

from eddyline.cli import doctor
from eddyline.cli.main import app

runner = CliRunner()


def test_doctor_is_content_with_the_machine_of_the_tests(monkeypatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "Everything is in place" in result.output
    assert "jdk.incubator.vector" in result.output


def test_doctor_says_how_to_get_java(monkeypatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere/java")
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 1
    flat = " ".join(result.output.split())
    assert "nothing at /nowhere/java/bin/java, where JAVA_HOME points" in flat
    assert "sudo apt-get install openjdk-17-jre-headless" in flat


def test_doctor_finds_an_old_java_and_a_missing_module(monkeypatch, tmp_path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15'\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    checks = {check.what: check for check in doctor.examine()}
    assert not checks["Java"].ok
    assert checks["Java"].found == "11.0.2"
    assert not checks["Java module jdk.incubator.vector"].ok


def test_doctor_finds_another_python_for_the_workers(monkeypatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/env")
    check = next(c for c in doctor.examine() if c.what == "PYSPARK_PYTHON")
    assert not check.ok
    assert check.fix == f"export PYSPARK_PYTHON={sys.executable}"
    monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python")
    check = next(c for c in doctor.examine() if c.what == "PYSPARK_PYTHON")
    assert "does not exist" in check.found


def test_doctor_finds_a_package_that_is_too_new_or_missing() -> None:
    assert not doctor._package("pandas", (2, 2), (2, 2), "pin it").ok
    missing = doctor._package("no-such-package", (1,), None, "install it")
    assert (missing.ok, missing.found, missing.fix) == (False, "not installed", "install it")


def test_doctor_shows_what_it_found_as_it_is() -> None:
    buffer = io.StringIO()
    check = doctor.Check("PYSPARK_PYTHON", "[/usr] [red]\x1b", False, "export [/x]")
    doctor.show([check], Console(file=buffer, width=80))
    assert "[/usr] [red]\\x1b" in buffer.getvalue()
    assert "PYSPARK_PYTHON: export [/x]" in buffer.getvalue()
