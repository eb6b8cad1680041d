"""Part two: rows of three kinds, with one order for all of them and with an order for each."""

from __future__ import annotations

import pathlib
import time
from typing import Any

import numpy as np
from rich.console import Console

from eddyline import udf, where
from eddyline.errors import EddylineError
from eddyline.report.describe import class_table
from eddyline.report.text import render_block
from eddyline.testing import three_kinds, word_predicate

PREDICATES = 6


def find_classes(console: Console, spark: Any, folder: pathlib.Path, rows: int, seed: int) -> None:
    """Filter with one adaptive order, then with classes; check the rows that both keep."""
    console.print(
        f"\n[bold]{rows:,} texts of three kinds, {PREDICATES} Python predicates.[/bold]\n"
        f"Each kind is dropped by different predicates: no single order suits all."
    )
    with console.status("generating texts ..."):
        path, passed = three_kinds(np.random.default_rng(seed), rows, folder / "kinds")
    texts = spark.read.parquet(path)
    functions = [word_predicate(number, extra_scans=2) for number in range(PREDICATES)]
    predicates = [udf(function, "text") for function in functions]
    one_order = where(*predicates, policy="agreedy", name="one order", seed=seed)
    classes = where(*predicates, name="classes", seed=seed)
    expected = int(passed.all(axis=1).sum())
    seconds = {}
    with console.status("filtering with one order, then with classes ..."):
        for f in (one_order, classes):
            began = time.perf_counter()
            kept = texts.transform(f).count()
            seconds[f.name] = time.perf_counter() - began
            if kept != expected:
                raise EddylineError(f"{f.name} kept {kept:,} rows instead of {expected:,}")
    report = classes.report()
    if report.classes:
        console.print()
        console.print(render_block(class_table(report.classes)))
    fewer = one_order.report().evaluations / max(report.evaluations, 1)
    console.print(
        f"\n[bold]{fewer:.1f} times fewer evaluations than with one adaptive order[/bold]\n"
        f"({seconds['classes']:.1f} s instead of {seconds['one order']:.1f} s). "
        f"Eddyline found out by itself that the column kind matters."
    )
