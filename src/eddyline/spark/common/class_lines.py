"""Classes of a mesh as lines of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.arrays import FloatArray, IntArray
from eddyline.mesh import Mesh, route_words
from eddyline.report.characters import one_line, shorten
from eddyline.report.model import ClassLine

NAME_CELLS_MAX = 40  # of a predicate's name in a route


@dataclass(frozen=True)
class ClassCounts:
    """What the rows of each class took; rows of no known class last.

    Parameters
    ----------
    rows
        Rows of each class.
    seen
        Evaluations of each predicate, by class.
    cost_us
        Cost of each predicate, in microseconds a row.

    """

    rows: IntArray
    seen: IntArray
    cost_us: FloatArray


def class_lines(
    mesh: Mesh, names: Sequence[str], plane: str, counts: ClassCounts | None = None
) -> list[ClassLine]:
    """Return a line for each class.

    Parameters
    ----------
    mesh
        The classes.
    names
        Of the predicates.
    plane
        Whether Spark or Python routes the rows.
    counts
        What was counted. Both the route and the single order are then priced with the same costs;
        without counts both are as expected by the search.

    """
    names = [shorten(one_line(name), NAME_CELLS_MAX) for name in names]
    paths: dict[int, list[str]] = {}
    for label, path in mesh.tree.paths():
        paths.setdefault(label, []).append(" and ".join(path) or "all rows")
    lines = []
    for label, row_class in enumerate(mesh.classes):
        if label not in paths:
            continue
        share, cost_us, single_us = row_class.share, row_class.expected_us, row_class.single_us
        if counts is not None and counts.rows.sum() > 0:
            share = float(counts.rows[label] / counts.rows.sum())
            cost_us = float(counts.seen[label] @ counts.cost_us) / max(int(counts.rows[label]), 1)
            single_us = sum(
                visits * us
                for visits, us in zip(row_class.single_visits, counts.cost_us, strict=True)
            )
        lines.append(
            ClassLine(
                "; or ".join(paths[label]),
                route_words(row_class.route, names),
                plane,
                share,
                cost_us,
                single_us,
            )
        )
    return lines
