"""`eddyline`: doctor, demo, engines from files, and benchmarks."""

from __future__ import annotations

import enum
import importlib
import pathlib
from typing import Annotated

import typer
from rich.console import Console

from eddyline import __version__
from eddyline.errors import EddylineError

app = typer.Typer(
    help="Adaptive query processing on PySpark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


class BenchName(enum.StrEnum):
    """The benchmarks there are."""

    agreedy = "agreedy"
    where = "where"
    cbr = "cbr"
    mesh = "mesh"
    native = "native"
    cacq = "cacq"


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
    """Check Java, PySpark and the packages it needs; say what is wrong and the exact fix."""
    from eddyline.cli.doctor import examine, show

    checks = examine()
    show(checks)
    if any(not check.ok for check in checks):
        raise typer.Exit(1)


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=8_000, help="Rows to generate.")] = 96_000,
    seed: Annotated[int, typer.Option(help="For the generated data.")] = 0,
    html: Annotated[
        pathlib.Path | None, typer.Option(help="Also write the report as a page.")
    ] = None,
) -> None:
    """Filter a drifting stream with Spark's own filter and with Eddyline, side by side."""
    from eddyline.cli.demo import run

    _or_explain(lambda: run(rows, seed, html))


@app.command()
def run(
    file: Annotated[pathlib.Path, typer.Argument(help="Streams, queries and sinks, as TOML.")],
    once: Annotated[
        bool, typer.Option("--once", help="Process what is there now, then stop.")
    ] = False,
) -> None:
    """Run the continuous queries that a file describes; Ctrl-C stops."""
    from eddyline.cli.run import run as run_file

    _or_explain(lambda: run_file(file, once))


@app.command()
def bench(
    name: Annotated[BenchName, typer.Argument(help="Which benchmark.")],
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
            help="Only this part, for example drifting of where; others stay in the file."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="For everything random.")] = 0,
    quick: Annotated[
        bool, typer.Option(help="Less data: shows that it works, the numbers are rough.")
    ] = False,
) -> None:
    """Measure, print the numbers as a table, and write them as JSON."""
    from eddyline.bench.harness import Bench

    measured = Bench(name.value, seed, quick, rounds, data, only, json)

    def measure() -> None:
        importlib.import_module(f"eddyline.bench.{name.value}").run(measured)
        measured.show()

    _or_explain(measure)


def _or_explain(action: object) -> None:
    """Run; say what was wrong in one line instead of a traceback, where it is known."""
    try:
        action()  # type: ignore[operator]
    except EddylineError as error:
        Console(stderr=True).print(f"[red]error:[/red] {error}", highlight=False)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    app()
