"""The command line: `eddyline doctor | demo | run | bench`."""

from __future__ import annotations

import enum
import importlib
import pathlib
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from eddyline import __version__
from eddyline.errors import EddylineError, MissingSparkError
from eddyline.report.text import plain

app = typer.Typer(
    help="Adaptive query processing on PySpark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


class BenchName(enum.StrEnum):
    """Names of the benchmarks."""

    agreedy = "agreedy"
    where = "where"
    cbr = "cbr"
    mesh = "mesh"
    native = "native"
    cacq = "cacq"
    joins = "joins"
    amri = "amri"


def _version(show: bool) -> None:
    if show:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def doctor() -> None:
    """Check Java, PySpark and the packages it needs; name each problem and its fix."""
    from eddyline.cli.doctor import examine, show

    checks = examine()
    show(checks)
    if any(not check.ok for check in checks):
        raise typer.Exit(1)


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=8_000, help="Rows to generate.")] = 96_000,
    seed: Annotated[int, typer.Option(help="Seed of the generated data.")] = 0,
    html: Annotated[
        pathlib.Path | None, typer.Option(help="Also write the report as a page.")
    ] = None,
) -> None:
    """Run a drifting stream, rows of several kinds, a thousand queries at once, and a join."""

    def run_demo() -> None:
        from eddyline.cli.demo import run

        run(rows, seed, html)

    _or_explain(run_demo)


@app.command()
def run(
    file: Annotated[pathlib.Path, typer.Argument(help="Streams, queries and sinks, as TOML.")],
    once: Annotated[
        bool, typer.Option("--once", help="Process the rows that are there now, then stop.")
    ] = False,
) -> None:
    """Run the continuous queries that a file describes; Ctrl-C stops."""

    def run_engine() -> None:
        from eddyline.cli.run import run

        run(file, once)

    _or_explain(run_engine)


@app.command()
def bench(
    name: Annotated[BenchName, typer.Argument(help="Name of the benchmark.")],
    json: Annotated[
        pathlib.Path | None, typer.Option(help="Write the numbers to this file.")
    ] = None,
    data: Annotated[
        pathlib.Path | None, typer.Option(help="Folder with real data, where a benchmark uses it.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each timed comparison.")] = 5,
    only: Annotated[
        str | None,
        typer.Option(
            help="Run one part only, for example drifting of where; the file keeps the others."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    quick: Annotated[
        bool, typer.Option(help="Less data: shows that it works, the numbers are rough.")
    ] = False,
    flink: Annotated[
        pathlib.Path | None,
        typer.Option(help="An interpreter that has PyFlink, for the part flink of joins."),
    ] = None,
) -> None:
    """Measure, print the numbers as a table, and write them as JSON."""

    def measure() -> None:
        from eddyline.bench.harness import Bench

        bench = Bench(name.value, seed, quick, rounds, data, only, json, flink)
        importlib.import_module(f"eddyline.bench.{name.value}").run(bench)
        bench.show()

    _or_explain(measure)


def _or_explain(action: Callable[[], None]) -> None:
    """Run an action; print an expected error as one message instead of a traceback."""
    try:
        action()
    except EddylineError as error:
        _fail(error)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "pyspark":
            raise
        _fail(MissingSparkError())


def _fail(error: EddylineError) -> None:
    console = Console(stderr=True)
    console.print(plain("error:", "red"), end=" ")
    for line in str(error).splitlines():
        console.print(plain(line))
    raise typer.Exit(1) from None


if __name__ == "__main__":
    app()
