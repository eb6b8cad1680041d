"""`eddyline run FILE.toml`: an engine described by a file."""

from __future__ import annotations

import importlib
import logging
import os
import pathlib
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console

from eddyline.errors import EngineError
from eddyline.spark.engine.engine import Engine
from eddyline.spark.engine.run import Run
from eddyline.spark.engine.sinks import callback

_KEYS: dict[str, set[str]] = {
    "the file": {"path", "trigger", "spark", "streams", "tables", "functions", "queries"},
    "stream": {"format", "schema", "options", "time", "delay"},
    "table": {"format", "schema", "options"},
    "query": {"sql", "sink"},
    "sink": {"format", "options", "mode"},
}
_POLL_S = 0.2


def run(file: pathlib.Path, once: bool) -> None:
    """Start the engine that a file describes; show its progress until it is stopped."""
    console = Console()
    described = read(file)
    spark = _start_spark(described.get("spark", {}))
    try:
        with Engine(spark, _beside(file, described["path"])) as engine:
            register(engine, described, file, console)
            trigger = "available now" if once else described.get("trigger", "1 second")
            started = engine.start(trigger)
            console.print(f"[bold]{engine.path}[/bold]: Ctrl-C stops", highlight=False)
            _follow(started, console)
            console.print(started.report())
    finally:
        spark.stop()


def read(file: pathlib.Path) -> dict[str, Any]:
    """Read the file and check what can be checked without Spark."""
    try:
        described = tomllib.loads(file.read_text())
    except OSError as error:
        raise EngineError(f"cannot read {file}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise EngineError(f"{file} is not TOML: {error}") from error
    _check_keys(described, "the file", str(file))
    if "path" not in described:
        raise EngineError(f'{file}: say where the engine keeps its files: path = "folder"')
    if not described.get("streams"):
        raise EngineError(f"{file}: describe a stream: [streams.NAME] with format and options")
    for kind in ("stream", "table"):
        for name, about in described.get(f"{kind}s", {}).items():
            _check_keys(about, kind, f"{kind} {name!r}")
            if "format" not in about:
                raise EngineError(f'{kind} {name!r}: say its format, for example format = "json"')
    for name, about in described.get("queries", {}).items():
        _check_keys(about, "query", f"query {name!r}")
        if "sql" not in about:
            raise EngineError(f'query {name!r}: write sql = "SELECT ..."')
        if isinstance(about.get("sink"), dict):
            _check_keys(about["sink"], "sink", f"the sink of query {name!r}")
    return described


def register(
    engine: Engine, described: Mapping[str, Any], file: pathlib.Path, console: Console
) -> None:
    """Bring an engine to what the file says; queries that are gone from it are dropped."""
    spark = engine.spark
    for name, about in described["streams"].items():
        frame = _loaded(spark.readStream, about, file, f"stream {name!r}")
        engine.stream(name, frame, about.get("time"), about.get("delay"))
    for name, about in described.get("tables", {}).items():
        engine.table(name, _loaded(spark.read, about, file, f"table {name!r}"))
    for name, target in described.get("functions", {}).items():
        engine.function(name, *_imported(name, target, file))
    wanted = described.get("queries", {})
    for state in engine.queries():
        now = wanted.get(state.name)
        if now is None or now["sql"] != state.sql or _kind(now.get("sink")) != state.sink:
            console.print(f"query {state.name} {'dropped' if now is None else 'replaced'}")
            engine.drop(state.name)
    for name, about in wanted.items():
        engine.query(name, about["sql"], _sink(name, about.get("sink"), file, console))


def _follow(run: Run, console: Console) -> None:
    """Print a line for each micro-batch, until the run ends or somebody stops it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    shown = -1
    try:
        while True:
            is_active = run.is_active
            for batch in run.batches():
                if batch.batch > shown:
                    console.print(str(batch), highlight=False)
                    shown = batch.batch
            if not is_active:
                run.await_termination()  # raises what went wrong, if anything did
                return
            time.sleep(_POLL_S)
    except KeyboardInterrupt:
        console.print("stopping; what this interrupts is run again at the next start ...")
        run.stop()
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_keys(about: Mapping[str, Any], kind: str, where: str) -> None:
    unknown = sorted(set(about) - _KEYS[kind])
    if unknown:
        known = ", ".join(sorted(_KEYS[kind]))
        raise EngineError(f"{where}: unknown key {unknown[0]!r}; known are {known}")


def _start_spark(settings: Mapping[str, Any]) -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("eddyline run")
    # What goes wrong is said once, in words, and not by Spark's log as well.
    defaults = {
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    for key, value in {**defaults, **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _loaded(reader: Any, about: Mapping[str, Any], file: pathlib.Path, what: str) -> Any:
    reader = reader.format(about["format"])
    if "schema" in about:
        reader = reader.schema(about["schema"])
    options = dict(about.get("options", {}))
    if "path" in options:
        options["path"] = _beside(file, options["path"])
    try:
        return reader.options(**options).load()
    except Exception as error:
        said = str(error).split("\n")[0]
        raise EngineError(f"{what} cannot be read: {said}") from error


def _imported(name: str, target: Any, file: pathlib.Path) -> tuple[Any, str]:
    """Return the function that `module:function` names, and the type of its answer."""
    given = target if isinstance(target, dict) else {"function": target}
    module, _, attribute = str(given.get("function", "")).partition(":")
    if not module or not attribute:
        raise EngineError(f'function {name!r}: write "module:function", not {target!r}')
    folder = str(file.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        imported = importlib.import_module(module)
        found = getattr(imported, attribute)
    except (ImportError, AttributeError) as error:
        raise EngineError(f"function {name!r}: {error}; looked beside {file}") from error
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(imported)  # workers do not look beside the file
    return found, given.get("returns", "boolean")


def _kind(sink: Any) -> str:
    """Return how the catalogue calls a sink of the file."""
    if isinstance(sink, dict):
        return "function"
    return {"console": "callback", None: "parquet"}.get(sink, str(sink))


def _sink(name: str, sink: Any, file: pathlib.Path, console: Console) -> Any:
    if sink in (None, "parquet"):
        return None
    if sink == "count":
        return "count"
    if sink == "console":

        def show(rows: list[Any]) -> None:
            for row in rows:
                console.print(f"{name}: {row.asDict()}", highlight=False, soft_wrap=True)

        return callback(show)
    if isinstance(sink, dict) and "format" in sink:
        return _writer(sink, file)
    raise EngineError(
        f'query {name!r}: the sink {sink!r} is none of "parquet", "count", "console" and '
        f'{{ format = "...", options = {{ ... }} }}'
    )


def _writer(sink: Mapping[str, Any], file: pathlib.Path) -> Callable[[Any, int], None]:
    options = dict(sink.get("options", {}))
    if "path" in options:
        options["path"] = _beside(file, options["path"])

    def write(results: Any, batch_id: int) -> None:
        mode = sink.get("mode", "append")
        results.write.format(sink["format"]).options(**options).mode(mode).save()

    return write


def _beside(file: pathlib.Path, path: str) -> str:
    """Return a path as seen from the file's folder; addresses stay as they are."""
    return path if "://" in path else str(file.absolute().parent / path)
