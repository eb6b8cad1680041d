"""`eddyline bench`: its options, and the file with the numbers."""

from __future__ import annotations

import collections
import json

import pytest
from typer.testing import CliRunner

from eddyline.bench.harness import Bench
from eddyline.cli.main import app
from eddyline.errors import EddylineError
from eddyline.testing.texts import read_newsgroups

runner = CliRunner()


def test_unknown_benchmark() -> None:
    result = runner.invoke(app, ["bench", "speed"])
    assert result.exit_code == 2
    assert "agreedy" in result.output


@pytest.mark.slow
def test_bench_agreedy_writes_its_numbers(tmp_path) -> None:
    path = tmp_path / "new" / "agreedy.json"
    for part in ("filters", "adaptivity", "overhead"):
        command = ["bench", "agreedy", "--quick", "--only", part, "--json", str(path)]
        result = runner.invoke(app, command)
        assert result.exit_code == 0, result.output
    document = json.loads(path.read_text())
    assert document["bench"] == "agreedy"
    assert document["environment"]["versions"]["numpy"]
    by_metric = {result["metric"]: result for result in document["results"]}
    assert all(
        set(r) >= {"metric", "value", "unit", "baseline", "paper"} for r in by_metric.values()
    )
    greedy = by_metric["fig 9: n=8: evaluations, A-Greedy / optimum"]["value"]
    independent = by_metric["fig 9: n=8: evaluations, Independent / optimum"]["value"]
    assert greedy <= 1.05 < independent
    assert by_metric["table 2: n=8, p=0.05: tuple processing"]["paper"] == 84.77
    own = "figs 16-18: rows until the new best order is in use, A-Greedy, Eddyline's defaults"
    assert by_metric[own]["value"] <= 20_000
    assert by_metric["fig 9: n=8: pairs of methods in the paper's order"]["value"] == 1


def test_bench_names_the_parts_there_are() -> None:
    result = runner.invoke(app, ["bench", "where", "--only", "two"])
    assert result.exit_code == 1
    assert "no part 'two'; its parts are stationary" in " ".join(result.output.split())


def test_a_part_of_a_benchmark_leaves_the_numbers_of_others_in_the_file(tmp_path) -> None:
    def numbers(part: str) -> dict[str, int]:
        bench = Bench("own", only=part, json=tmp_path / "own.json")
        bench.run_parts({name: lambda: bench.add("rows", 1, "rows") for name in ("a", "b")})
        results = json.loads((tmp_path / "own.json").read_text())["results"]
        return collections.Counter(result["part"] for result in results)

    assert [numbers("a"), numbers("b"), numbers("a")] == [{"a": 1}, *[{"a": 1, "b": 1}] * 2]


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_bench_where_names_missing_data(tmp_path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EddylineError, match=r"no train\.jsonl\.gz in .*--data takes the folder"):
        read_newsgroups(tmp_path / folder)


def test_numbers_are_shown_as_they_are(capsys) -> None:
    bench = Bench("own")
    bench.add("rows of [a-z]+ [/docs]", 1_234.5, "rows", baseline="[red]")
    bench.show()
    shown = capsys.readouterr().out
    assert "rows of [a-z]+ [/docs]" in shown
    assert "1,234" in shown
    assert "[red]" in shown
