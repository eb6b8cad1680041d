"""Step 5, join graph: which sources are connected by which equalities."""

from __future__ import annotations

from eddyline.sql.join_graph import JoinedQuery, join_graph
from tests.unit.sql.support import Case, cases, output, to_sql


def describe(query: JoinedQuery) -> list[str]:
    graph = query.graph
    lines = [f"sources: {', '.join(graph.sources)}"]
    for equality in graph.equalities:
        columns = " = ".join(f"{alias}.{name}" for alias, name in equality.columns.items())
        lines.append(f"edge {', '.join(sorted(equality.sources))}: {columns or 'expressions'}")
    for source in graph.sources:
        lines += [f"local {source}: {to_sql(node)}" for node in graph.local_conditions(source)]
    return lines


@cases(join_graph)
def test_join_graph(case: Case) -> None:
    assert output(case.sql, join_graph, describe) == case.expected
