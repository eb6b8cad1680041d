"""The pages in docs name only what exists: files, commands, packages, public names."""

from __future__ import annotations

import builtins
import importlib
import itertools
import pathlib
import re
from unittest import mock

import pytest

import eddyline as el
from eddyline.bench import native
from eddyline.bench.harness import Bench
from eddyline.cli.main import BenchName
from eddyline.errors import EddylineError

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
PATH = re.compile(r"`((?:src|tests|docs|examples|scripts)/[\w./-]+|[\w/]+/\w+\.py)`")
HOMES = (ROOT, ROOT / "src" / "eddyline", ROOT / "src" / "eddyline" / "spark")
COMMAND = re.compile(r"eddyline bench ([a-z]+(?: \| [a-z]+)*)|--only ([a-z]+(?: \| [a-z]+)*)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: pathlib.Path) -> None:
    targets = LINK.findall(page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    paths = PATH.findall(page.read_text())
    missing += [path for path in paths if not any((home / path).exists() for home in HOMES)]
    assert not missing


def parts_of(name: str) -> set[str]:
    """Return the parts of a benchmark, with those that need data or an interpreter with PyFlink."""
    anywhere = pathlib.Path("somewhere")
    bench = Bench(name, quick=True, only="?", data=anywhere, flink=anywhere)
    module = importlib.import_module(f"eddyline.bench.{name}")
    with mock.patch.object(native, "local_spark"), pytest.raises(EddylineError) as error:
        module.run(bench)
    return set(str(error.value).split("its parts are ")[1].split(", "))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_public_name_and_every_class_exists(page: pathlib.Path) -> None:
    text = page.read_text()
    sources = "\n".join(path.read_text() for path in ROOT.glob("src/eddyline/**/*.py"))
    classes = {*re.findall(r"^class (\w+)", sources, re.MULTILINE), *dir(builtins)}
    missing = [name for name in re.findall(r"\bel\.(\w+)", text) if not hasattr(el, name)]
    missing += [
        name for name in re.findall(r"`([A-Z][a-z]+(?:[A-Z]\w*)+)\b", text) if name not in classes
    ]
    methods = re.findall(r"(?<![\w./])engine\.([a-z_]+)\(", text)
    assert not missing + [name for name in methods if not hasattr(el.Engine, name)]


@pytest.fixture(scope="module")
def parts() -> dict[str, set[str]]:
    return {name.value: parts_of(name.value) for name in BenchName}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_benchmark_that_is_named_exists(
    page: pathlib.Path, parts: dict[str, set[str]]
) -> None:
    """`--only PART` is of the benchmark that was named last on the page."""
    text = re.sub(r"\n(?![|\n])", " ", page.read_text())
    named = set(itertools.chain.from_iterable(parts.values()))
    for names, only in COMMAND.findall(text):
        if names:
            assert set(names.split(" | ")) <= set(parts)
            named = set().union(*(parts[name] for name in names.split(" | ")))
        else:
            assert set(only.split(" | ")) <= named, only


def test_the_map_of_the_code_names_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    packages = [path.parent.name for path in ROOT.glob("src/eddyline/*/__init__.py")]
    assert [name for name in packages if f"src/eddyline/{name}" not in text] == []


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    for page in folder.glob("0*.md"):
        number, title = page.read_text().splitlines()[0].removeprefix("# ").split(". ", 1)
        assert f"{number}. [{title}]({page.name})\n" in index
