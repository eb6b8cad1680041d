"""Write docs/benchmarks.md from the JSON files that `eddyline bench NAME --json FILE` wrote."""

from __future__ import annotations

import json
import pathlib
import sys

HEAD = """# Benchmarks

Written by `make docs` from what `make bench` measured; nothing here is typed by hand. Times are
ratios of variants run in turn, medians of several rounds, beside a control that compares a variant
with itself. Evaluations are counted.
"""


def main(artifacts: pathlib.Path, page: pathlib.Path) -> int:
    """Write the page; return an exit status."""
    files = sorted(artifacts.glob("*.json"))
    if not files:
        print(f"no results in {artifacts}; run `make bench` first", file=sys.stderr)
        return 1
    parts = [HEAD]
    for path in files:
        document = json.loads(path.read_text())
        environment = document["environment"]
        versions = ", ".join(f"{k} {v}" for k, v in environment["versions"].items())
        parts.append(
            f"## eddyline bench {document['bench']}\n\n"
            f"{environment['cores']} cores, {environment['memory_gib']} GiB, "
            f"Python {environment['python']}, {versions}; seed {environment['seed']}.\n\n"
            "| metric | value | unit | baseline | paper |\n|---|---:|---|---|---|"
        )
        for result in document["results"]:
            value = result["value"]
            shown = f"{value:,.3f}" if abs(value) < 1000 else f"{value:,.0f}"
            cells = [result["metric"], shown, result["unit"]]
            cells += ["" if result[k] is None else str(result[k]) for k in ("baseline", "paper")]
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append("")
    page.write_text("\n".join(parts))
    print(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
