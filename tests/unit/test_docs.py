"""The pages in docs name only files that exist, and the map of the code names every package."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
PATH = re.compile(r"`((?:src|tests|docs|examples|scripts)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: pathlib.Path) -> None:
    targets = LINK.findall(page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    missing += [path for path in PATH.findall(page.read_text()) if not (ROOT / path).exists()]
    assert not missing


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
