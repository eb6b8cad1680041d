"""Write docs/benchmarks.md from the JSON files that `eddyline bench NAME --json FILE` wrote.

A few numbers go into the README, too. On the page there is a section for each benchmark, a table
for each of its parts. What a number was compared with stands in the table if it is short; otherwise
once below it, as a note.
"""

from __future__ import annotations

import itertools
import json
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

HEAD = """# Benchmarks

Written by `make docs` from what `make bench` measured; nothing here is typed by hand. Times are
ratios of variants run in turn, medians of several rounds, beside a control that compares a variant
with itself. Evaluations are counted. "paper" is what the paper reports for the same quantity.
"""
#: What the README shows: the benchmark, the beginning of the metric, and what to call it.
HEADLINES = (
    (
        "native",
        "three kinds of rows, native: best static order / mesh, planned with the default",
        "native conditions over three kinds of rows, CPU time: best single order / mesh",
    ),
    (
        "native",
        "three classes of digests, native: as written / mesh, planned with the default limit",
        "the same with hashes as conditions: as written / mesh",
    ),
    (
        "where",
        "three predicates of less than 1 us, 2,000,000 rows: CPU time, auto / Spark's filter",
        "three Python predicates of less than 1 µs, CPU time: `el.where` / `df.filter`",
    ),
    (
        "mesh",
        "fig 10: skewed (Poisson): output rate, mesh / single plan",
        "Query Mesh on skewed data, results a second: mesh / single plan",
    ),
    (
        "cacq",
        "fig 8: filters visited by a row, tickets",
        "queries over five columns: filters that a row visits (at best 1.14)",
    ),
    (
        "cacq",
        "fig 6 a: 50 queries: time, an eddy for each / one for all",
        "50 queries over one stream, time: one by one / shared",
    ),
    (
        "cacq",
        "memory of a query on the driver, beside its text: two comparisons",
        "memory of one of 20,000 queries on the driver, beside its text",
    ),
    (
        "amri",
        "2,500 rows, 3 join columns: index bytes, 7 hash indices / AMRI",
        "index over join state for every search, memory: 7 hash indices / one that tunes itself",
    ),
)
BEGIN, END = "<!-- measured: written by make docs -->", "<!-- end -->"
CELL_MAX = 60  # characters of a baseline in a table; a longer one becomes a note


def main(artifacts: pathlib.Path, page: pathlib.Path, readme: pathlib.Path) -> int:
    """Write the page and the table of the README; return an exit status."""
    files = sorted(artifacts.glob("*.json"))
    if not files:
        print(f"no results in {artifacts}; run `make bench` first", file=sys.stderr)
        return 1
    documents = [json.loads(path.read_text()) for path in files]
    links = [f"[{name}](#eddyline-bench-{name})" for name in (each["bench"] for each in documents)]
    sections = [section for document in documents for section in benchmark_sections(document)]
    page.write_text("\n".join([HEAD, " | ".join(links), "", *sections]))
    text = readme.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    readme.write_text("\n".join([before + BEGIN, "", headlines(documents), "", END]) + after)
    print(f"wrote {page} and {readme}")
    return 0


def headlines(documents: Sequence[dict[str, Any]]) -> str:
    """Return the numbers of the README as a table; those that were not measured are left out."""
    results = {
        (each["bench"], result["metric"]): result
        for each in documents
        for result in each["results"]
    }
    lines = [_row(["what", "measured", "paper"]), "|---|---:|---|"]
    for bench, metric, words in HEADLINES:
        found = [
            r for (name, full), r in results.items() if name == bench and full.startswith(metric)
        ]
        for result in found[:1]:
            unit = result["unit"]
            value = (
                f"{result['value']:,.0f} bytes" if unit == "bytes" else f"{result['value']:,.2f}"
            )
            value += " x" if unit == "x" else ""
            paper = "" if result["paper"] is None else str(result["paper"])
            lines.append(_row([words, value, paper]))
    return "\n".join(lines)


def benchmark_sections(document: dict[str, Any]) -> Iterator[str]:
    """Yield the heading of a benchmark, and each of its parts."""
    environment = document["environment"]
    versions = ", ".join(f"{k} {v}" for k, v in environment["versions"].items())
    yield (
        f"## eddyline bench {document['bench']}\n\n"
        f"{environment['cores']} cores, {environment['memory_gib']} GiB, "
        f"Python {environment['python']}, {versions}; seed {environment['seed']}.\n"
    )
    for part, results in itertools.groupby(document["results"], lambda result: result["part"]):
        if part is not None:
            yield f"### {document['bench']} --only {part}\n"
        yield part_table(list(results))


def part_table(results: Sequence[dict[str, Any]]) -> str:
    """Return the table of one part, with its notes.

    Examples
    --------
    >>> ratio = {"metric": "as written / ours", "value": 1.5, "unit": "x", "paper": None}
    >>> print(part_table([{**ratio, "baseline": "control 1.00"}, {**ratio, "baseline": "x" * 70}]))
    | metric | value | unit | compared with |
    |---|---:|---|---|
    | as written / ours | 1.500 | x | control 1.00 |
    | as written / ours | 1.500 | x | note 1 |
    <BLANKLINE>
    1. xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    <BLANKLINE>

    """
    notes: dict[str, int] = {}
    has_paper = any(result["paper"] is not None for result in results)
    head = ["metric", "value", "unit", "compared with", *(["paper"] if has_paper else [])]
    lines = [_row(head), "|---|---:|---|---|" + ("---|" if has_paper else "")]
    for result in results:
        baseline = "" if result["baseline"] is None else str(result["baseline"])
        if len(baseline) > CELL_MAX:
            baseline = f"note {notes.setdefault(baseline, len(notes) + 1)}"
        cells = [result["metric"], _number(result["value"]), result["unit"], baseline]
        if has_paper:
            cells.append("" if result["paper"] is None else str(result["paper"]))
        lines.append(_row(cells))
    if notes:
        lines += ["", *(f"{number}. {note}" for note, number in notes.items())]
    return "\n".join([*lines, ""])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _number(value: float) -> str:
    return f"{value:,.3f}" if abs(value) < 1000 else f"{value:,.0f}"


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:4])))
