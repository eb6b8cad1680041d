"""Classes of a mesh as lines of the report."""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.arrays import FloatArray, IntArray
from eddyline.mesh import Mesh, route_words
from eddyline.report.model import ClassLine


def class_lines(
    mesh: Mesh,
    names: Sequence[str],
    where: str,
    rows: IntArray | None = None,
    spent_us: FloatArray | None = None,
) -> list[ClassLine]:
    """Return a line for each class; with counts of rows and time where there are any.

    Parameters
    ----------
    mesh
        The classes.
    names
        Of the predicates.
    where
        Whether Spark or Python routes the rows.
    rows, spent_us
        By class, the last for rows of no known class, which take the default route.
    """
    paths: dict[int, list[str]] = {}
    for label, path in mesh.tree.paths():
        paths.setdefault(label, []).append(" and ".join(path) or "all rows")
    counted = rows is not None and spent_us is not None and rows.sum() > 0
    lines = []
    for label, own in enumerate(mesh.classes):
        if label not in paths:
            continue
        share, cost_us = own.share, own.expected_us
        if counted and rows is not None and spent_us is not None:
            share = float(rows[label] / rows.sum())
            cost_us = float(spent_us[label] / max(rows[label], 1))
        lines.append(
            ClassLine(
                "; or ".join(paths[label]),
                route_words(own.route, names),
                where,
                share,
                cost_us,
                own.single_us,
            )
        )
    return lines
