"""Texts to filter, real and generated, and the kinds of predicates that pipelines have."""

from __future__ import annotations

import gzip
import json
import pathlib
import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.arrays import BoolArray
from eddyline.errors import EddylineError

TextPredicate = Callable[[str], bool]

_WORDS = (
    "about after again area back became before began being between black both build came carry "
    "change city close common could country course cover cross decide deep differ direct door "
    "draw during early earth enough even every example family farm father figure final first "
    "follow food form found four friend front full game gave general girl give good govern great "
    "green ground group grow half hand hard head hear help here high hold home horse hot hour "
    "house hundred idea inch island just keep kind king knew land language large last late laugh "
    "learn leave left letter life light line list listen little live long look machine made main"
).split()
_STOPWORDS = frozenset(
    "the a an and or but if then of to in on at by for with from is are was were be been it this "
    "that these those i you he she we they not no as do does did have has had".split()
)


# --- six predicates over real text ----------------------------------------------------------------


def is_english(text: str) -> bool:
    """More than a quarter of the words are English stopwords."""
    words = text.lower().split()
    return sum(word in _STOPWORDS for word in words) > 0.25 * len(words)


def not_quoting(text: str) -> bool:
    """Fewer than two marks of quotation, as replies have them."""
    return len(re.findall(r"(?:^|\s)[>|:]+\s", text)) < 2


def mentions_number(text: str) -> bool:
    """A price, or a number with dots such as a version."""
    return re.search(r"(?:[$£€]\s?\d[\d,.]*)|(?:\b\d+(?:\.\d+)+\b)", text) is not None


def asks_something(text: str) -> bool:
    """More than two questions."""
    return len(re.findall(r"\b(?:who|what|why|how|when|where|can|does)\b[^.?!]{3,80}\?", text)) > 2


def few_capitals(text: str) -> bool:
    """Fewer than 5 % of the letters are capitals."""
    letters = [c for c in text if c.isalpha()]
    return sum(map(str.isupper, letters)) < 0.05 * len(letters)


def rich_vocabulary(text: str) -> bool:
    """Few words are repeated."""
    words = re.findall(r"[a-z]+", text.lower())
    return len(set(words)) > 0.62 * len(words)


REAL_PREDICATES: tuple[TextPredicate, ...] = (
    is_english,
    rich_vocabulary,
    few_capitals,
    asks_something,
    mentions_number,
    not_quoting,
)


def read_newsgroups(folder: pathlib.Path) -> list[str]:
    """Return the texts of the 20 Newsgroups training set, stored as JSON lines."""
    path = folder / "train.jsonl.gz"
    if not path.exists():
        nested = folder / "text_20newsgroups" / "train.jsonl.gz"
        if not nested.exists():
            raise EddylineError(
                f"no train.jsonl.gz in {folder} nor in its folder text_20newsgroups; "
                f"--data takes the folder that holds the 20 Newsgroups texts as JSON lines"
            )
        path = nested
    with gzip.open(path, "rt") as lines:
        return [json.loads(line)["text"] for line in lines]


# --- generated text: each predicate looks for a word, so that selectivities can be set ------------


def word_predicate(number: int, extra_scans: int = 0) -> TextPredicate:
    """Return a predicate that looks for its marker word with a regular expression.

    Parameters
    ----------
    number
        Number of the marker.
    extra_scans
        Further scans of the text, which make the predicate more expensive.

    Examples
    --------
    >>> mark2 = word_predicate(2)
    >>> mark2.__name__, mark2("some mark2 here"), mark2("some mark3 here")
    ('mark2', True, False)

    """
    pattern = re.compile(rf"\b[a-z]*mark{number}\b")
    scan = re.compile(r"\b[aeiou][a-z]*q\b")

    def looks_for(text: str) -> bool:
        for _ in range(extra_scans):
            scan.search(text)
        return pattern.search(text) is not None

    looks_for.__name__ = f"mark{number}"
    return looks_for


def generate_texts(rng: np.random.Generator, answers: np.ndarray, words: int = 40) -> list[str]:
    """Return one text for each row, with the markers of the predicates that it passes.

    Parameters
    ----------
    rng
        Source of randomness.
    answers
        One answer for each row and predicate, as `draw_answers` returns them.
    words
        Words of a text, without the markers.

    Examples
    --------
    >>> answers = np.array([[True, False], [False, True]])
    >>> texts = generate_texts(np.random.default_rng(0), answers)
    >>> [[word_predicate(number)(text) for number in (0, 1)] for text in texts]
    [[True, False], [False, True]]

    """
    picks = rng.integers(0, len(_WORDS), (len(answers), words))
    places = rng.integers(0, words, answers.shape)
    texts = []
    for row in range(len(answers)):
        text = [_WORDS[pick] for pick in picks[row]]
        for number in np.flatnonzero(answers[row]):
            text.insert(places[row, number], f"mark{number}")
        texts.append(" ".join(text))
    return texts


KINDS = ("alpha", "beta", "gamma")


def three_kinds(
    rng: np.random.Generator, rows: int, folder: pathlib.Path, words: int = 40
) -> tuple[str, BoolArray]:
    """Write texts of three kinds, each mostly dropped by two of the six markers.

    Parameters
    ----------
    rng
        Source of randomness.
    rows
        Number of texts.
    folder
        Folder for the Parquet files, with the columns kind, size and text.
    words
        Words of a text, without the markers.

    Returns
    -------
    path
        The folder, as Spark reads it.
    passed
        For each row and marker, whether the text has the marker.

    Examples
    --------
    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> path, passed = three_kinds(np.random.default_rng(0), 300, folder)
    >>> table = pq.read_table(path)
    >>> table.column_names, sorted(set(table["kind"].to_pylist())), passed.shape
    (['kind', 'size', 'text'], ['alpha', 'beta', 'gamma'], (300, 6))

    """
    kinds = rng.integers(0, len(KINDS), rows)
    selectivity = np.full((len(KINDS), 2 * len(KINDS)), 0.95)
    for kind in range(len(KINDS)):
        selectivity[kind, [2 * kind, 2 * kind + 1]] = [0.05, 0.4]
    passed = rng.random((rows, 2 * len(KINDS))) < selectivity[kinds]
    columns = {
        "kind": [KINDS[kind] for kind in kinds],
        "size": rng.random(rows),
        "text": generate_texts(rng, passed, words),
    }
    write_table(pa.table(columns), folder)
    return str(folder), passed


def write_table(table: pa.Table, folder: pathlib.Path, files: int = 2) -> None:
    """Write a table as a number of Parquet files of equal size."""
    folder.mkdir(parents=True, exist_ok=True)
    share = -(-table.num_rows // files)
    for number in range(files):
        pq.write_table(table.slice(number * share, share), folder / f"part-{number}.parquet")


def write_parquet(texts: Sequence[str], folder: pathlib.Path, files: int = 2) -> str:
    """Write texts as Parquet, with the columns id and text; return the folder."""
    write_table(pa.table({"id": np.arange(len(texts)), "text": list(texts)}), folder, files)
    return str(folder)
