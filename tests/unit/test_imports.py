"""The public names, the version, and what is imported when."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tomllib

import pytest

import eddyline as el


def test_every_public_name_is_there() -> None:
    for name in el.__all__:
        assert getattr(el, name) is not None
        assert name in dir(el)


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match="module 'eddyline' has no attribute 'were'"):
        el.were  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("module", ["eddyline.spark.where.worker", "eddyline.spark.engine.worker"])
def test_a_worker_imports_neither_the_sql_parser_nor_reports_nor_the_driver(module: str) -> None:
    source = f"import sys, {module}; print(*sys.modules)"
    imported = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    ).stdout.split()
    assert module in imported
    unwanted = {"sqlglot", "rich", "eddyline.report", "eddyline.spark.where.where"}
    assert not unwanted & {*imported}


@pytest.mark.parametrize("name", ["where", "Where", "udf", "lookup", "Engine", "Run", "callback"])
def test_without_pyspark_a_name_that_needs_it_says_how_to_get_it(name: str) -> None:
    source = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import eddyline as el\n"
        "el.AGreedy, el.MeshOptions, el.Report\n"  # these need no Spark
        f"try:\n    from eddyline import {name}\n"
        "except ImportError as error:\n"
        "    assert isinstance(error, el.MissingSparkError)\n"
        "    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert 'pip install "eddyline[spark]"' in run.stdout


def test_the_version_is_written_in_one_place() -> None:
    project = tomllib.loads((pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    source = pathlib.Path(el.__file__).read_text()
    assert project["tool"]["hatch"]["version"]["path"].endswith("eddyline/__init__.py")
    assert f'__version__ = "{el.__version__}"' in source
