"""The command line as such: the version, errors, and a machine without PySpark."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from eddyline import __version__
from eddyline.cli import main
from eddyline.errors import EddylineError

runner = CliRunner()


def test_version() -> None:
    assert runner.invoke(main.app, ["--version"]).output.strip() == __version__


def test_an_error_is_shown_as_it_is(monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise EddylineError("name RLIKE '[a-z]+' [/docs] [red]\x1b[2J\nsecond line")

    monkeypatch.setattr("eddyline.cli.run.run", fail)
    result = runner.invoke(main.app, ["run", "any.toml"])
    assert result.exit_code == 1
    expected = "error: name RLIKE '[a-z]+' [/docs] [red]\\x1b[2J\nsecond line\n"
    assert result.output == expected


@pytest.mark.parametrize(
    "command", [["demo"], ["run", "any.toml"], ["bench", "native", "--quick"]], ids=" ".join
)
def test_without_pyspark_a_command_says_how_to_get_it(command: list[str]) -> None:
    source = (
        "import sys; sys.modules['pyspark'] = None\n"
        f"sys.argv = ['eddyline', *{command!r}]\n"
        "from eddyline.cli.main import app; app()"
    )
    run = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert 'pip install "eddyline[spark]"' in " ".join(run.stderr.split())
    assert "Traceback" not in run.stderr


def test_another_missing_module_is_not_explained_away() -> None:
    def fail() -> None:
        raise ModuleNotFoundError("No module named 'x'", name="x")

    with pytest.raises(ModuleNotFoundError):
        main._or_explain(fail)
