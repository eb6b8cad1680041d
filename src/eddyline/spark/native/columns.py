"""A mesh over native conditions, compiled into one Column.

A mesh becomes nested conditionals: the tests of its tree choose a route, and a route is a chain of
`if(p2, if(p1, ..., false), false)`. Not `p2 AND p1`: Spark's optimizer merges branches that are
equal up to the order of AND, which would leave one order for all rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from eddyline.mesh import Mesh
from eddyline.mesh.mesh import Route
from eddyline.mesh.split import Split
from eddyline.mesh.tree import Node

if TYPE_CHECKING:
    from pyspark.sql import Column


def mesh_to_column(
    mesh: Mesh,
    conditions: Sequence[Column],
    attributes: Mapping[str, Column],
    default: Sequence[int],
) -> Column:
    """Return a mesh as one condition; rows unlike all in the sample take the default order.

    Its routes must not have uncertain steps (`Mesh.settled`): a Column cannot choose on the way.
    """
    routed = _node_to_column(mesh.tree.root, mesh, conditions, attributes)
    for name, values in mesh.tree.known.items():
        column = attributes[name]
        met = F.coalesce(column.isin(*[_literal(v) for v in values]), F.lit(True))
        routed = F.when(met, routed).otherwise(route_to_column(default, conditions))
    return routed


def route_to_column(route: Sequence[int], conditions: Sequence[Column]) -> Column:
    """Return a route as nested conditionals, which no optimizer reorders."""
    chained = F.coalesce(conditions[route[-1]], F.lit(False))
    for number in reversed(route[:-1]):
        chained = F.when(conditions[number], chained).otherwise(F.lit(False))
    return chained


def _node_to_column(
    node: Node, mesh: Mesh, conditions: Sequence[Column], attributes: Mapping[str, Column]
) -> Column:
    if node.split is None or node.left is None or node.right is None:
        return route_to_column(_certain(mesh.classes[node.label].route), conditions)
    return F.when(
        split_to_column(node.split, attributes[node.split.attribute]),
        _node_to_column(node.left, mesh, conditions, attributes),
    ).otherwise(_node_to_column(node.right, mesh, conditions, attributes))


def _certain(route: Route) -> list[int]:
    order = [step for step in route if isinstance(step, int)]
    if len(order) < len(route):
        raise ValueError(f"route {route} has uncertain steps, which a Column cannot choose among")
    return order


def split_to_column(split: Split, column: Column) -> Column:
    """Return a test of the tree as a condition that is never NULL."""
    if split.values is None:
        test = column <= _literal(split.at)
    elif split.values:
        test = column.isin(*[_literal(value) for value in split.values])
    else:
        test = F.when(column.isNotNull(), F.lit(False))
    return F.coalesce(test, F.lit(split.null_left))


def _literal(value: Any) -> Column:
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return F.lit(value.isoformat(sep=" ")).cast("timestamp_ntz")
    return F.lit(value)
