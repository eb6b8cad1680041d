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
from typing import TYPE_CHECKING, Any

from rich.console import Console

from eddyline import Engine
from eddyline.errors import EngineError
from eddyline.report.text import plain
from eddyline.spark.engine.sinks import Callback, is_same_kind

if TYPE_CHECKING:
    from eddyline import Run

_KEYS: dict[str, set[str]] = {
    "the file": {"path", "trigger", "spark", "streams", "tables", "functions", "queries"},
    "stream": {"format", "schema", "options", "time", "delay", "idle"},
    "table": {"format", "schema", "options"},
    "query": {"sql", "sink"},
    "sink": {"format", "options", "mode"},
}
_POLL_S = 0.2


def run(file: pathlib.Path, once: bool) -> None:
    """Start Spark and the engine that a file describes; show its progress until it stops."""
    description = read(file)
    spark = _start_spark(description.get("spark", {}))
    try:
        run_engine(spark, description, file, once, Console())
    finally:
        spark.stop()


def run_engine(
    spark: Any, description: Mapping[str, Any], file: pathlib.Path, once: bool, console: Console
) -> None:
    """Run the engine of a description in a Spark session until it stops; print its report.

    Parameters
    ----------
    spark
        The session; it is not stopped.
    description, file
        Contents of the file, and the file itself: paths in it are relative to its folder.
    once
        Whether to stop after processing the rows that are there now.
    console
        Where progress is shown.

    """
    with Engine(spark, _resolve(file, description["path"])) as engine:
        register(engine, description, file, console)
        started = engine.start("available now" if once else description.get("trigger", "1 second"))
        until = "stops after the rows that are there now" if once else "Ctrl-C stops"
        console.print(plain(f"{engine.path}: {until}", "bold"))
        _follow(started, console)
        console.print(started.report())


def read(file: pathlib.Path) -> dict[str, Any]:
    """Read the file and check everything that can be checked without Spark."""
    try:
        description = tomllib.loads(file.read_text())
    except OSError as error:
        raise EngineError(f"cannot read {file}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise EngineError(f"{file} is not TOML: {error}") from error
    _check_keys(description, "the file", str(file))
    if "path" not in description:
        raise EngineError(f'{file}: say where the engine keeps its files: path = "folder"')
    if not description.get("streams"):
        raise EngineError(f"{file}: describe a stream: [streams.NAME] with format and options")
    for kind in ("stream", "table"):
        for name, settings in description.get(f"{kind}s", {}).items():
            _check_keys(settings, kind, f"{kind} {name!r}")
            if "format" not in settings:
                raise EngineError(f'{kind} {name!r}: say its format, for example format = "json"')
    for name, settings in description.get("queries", {}).items():
        _check_keys(settings, "query", f"query {name!r}")
        if "sql" not in settings:
            raise EngineError(f'query {name!r}: write sql = "SELECT ..."')
        if isinstance(settings.get("sink"), dict):
            _check_keys(settings["sink"], "sink", f"the sink of query {name!r}")
    return description


def register(
    engine: Engine, description: Mapping[str, Any], file: pathlib.Path, console: Console
) -> None:
    """Give an engine the streams, tables, functions and queries of the description.

    A query of the engine that the description lacks is dropped; one that it changes is replaced.
    """
    spark = engine.spark
    for name, settings in description["streams"].items():
        frame = _load(spark.readStream, settings, file, f"stream {name!r}")
        times = [settings.get(key) for key in ("time", "delay", "idle")]
        engine.stream(name, frame, *times)
    for name, settings in description.get("tables", {}).items():
        engine.table(name, _load(spark.read, settings, file, f"table {name!r}"))
    for name, target in description.get("functions", {}).items():
        engine.function(name, *_import_function(name, target, file))
    queries = description.get("queries", {})
    for state in engine.queries():
        new = queries.get(state.name)
        is_same = (
            new is not None
            and new["sql"] == state.sql
            and is_same_kind(state.sink, _sink_kind(new.get("sink")))
        )
        if not is_same:
            console.print(plain(f"query {state.name} {'dropped' if new is None else 'replaced'}"))
            engine.drop(state.name)
    for name, settings in queries.items():
        engine.query(name, settings["sql"], _make_sink(name, settings.get("sink"), file, console))


def _follow(run: Run, console: Console) -> None:
    """Print a line for each micro-batch until the run ends or is interrupted."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous_handler = signal.signal(signal.SIGTERM, interrupt)
    newest = -1
    try:
        while True:
            is_active = run.is_active
            for batch in run.batches():
                if batch.batch > newest:
                    console.print(plain(str(batch)))
                    newest = batch.batch
            if not is_active:
                run.await_termination()  # raises the error that ended the run, if there was one
                return
            time.sleep(_POLL_S)
    except KeyboardInterrupt:
        console.print(plain("stopping; an interrupted micro-batch is run again at the next start"))
        run.stop()
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


def _check_keys(settings: Mapping[str, Any], kind: str, where: str) -> None:
    unknown = sorted(set(settings) - _KEYS[kind])
    if unknown:
        known = ", ".join(sorted(_KEYS[kind]))
        raise EngineError(f"{where}: unknown key {unknown[0]!r}; the known keys are {known}")


def _start_spark(settings: Mapping[str, Any]) -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("eddyline run")
    # Errors are printed once, in words; the log of Spark would repeat them with stack traces.
    defaults = {
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    for key, value in {**defaults, **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _load(reader: Any, settings: Mapping[str, Any], file: pathlib.Path, what: str) -> Any:
    reader = reader.format(settings["format"])
    if "schema" in settings:
        reader = reader.schema(settings["schema"])
    try:
        return reader.options(**_options(settings, file)).load()
    except Exception as error:
        first_line = str(error).split("\n")[0]
        raise EngineError(f"{what} cannot be read: {first_line}") from error


def _import_function(name: str, target: Any, file: pathlib.Path) -> tuple[Any, str]:
    """Return the function that `module:function` names, and its return type."""
    settings = target if isinstance(target, dict) else {"function": target}
    module_name, _, attribute = str(settings.get("function", "")).partition(":")
    if not module_name or not attribute:
        raise EngineError(f'function {name!r}: write "module:function", not {target!r}')
    folder = str(file.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
        function = getattr(module, attribute)
    except (ImportError, AttributeError) as error:
        raise EngineError(f"function {name!r}: {error}; looked beside {file}") from error
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # workers cannot import from that folder
    return function, settings.get("returns", "boolean")


def _sink_kind(sink: Any) -> str:
    """Return the name under which the catalogue lists a sink of the file."""
    if isinstance(sink, dict):
        return "function"
    return "parquet" if sink is None else str(sink)


def _make_sink(name: str, sink: Any, file: pathlib.Path, console: Console) -> Any:
    if sink in (None, "parquet"):
        return None
    if sink == "count":
        return "count"
    if sink == "console":

        def show(rows: list[Any]) -> None:
            for row in rows:
                console.print(plain(f"{name}: {row.asDict()}"), soft_wrap=True)

        return Callback(show, kind="console")
    if isinstance(sink, dict) and "format" in sink:
        return _make_writer(sink, file)
    raise EngineError(
        f'query {name!r}: the sink {sink!r} is none of "parquet", "count", "console" and '
        f'{{ format = "...", options = {{ ... }} }}'
    )


def _make_writer(sink: Mapping[str, Any], file: pathlib.Path) -> Callable[[Any, int], None]:
    options = _options(sink, file)

    def write(results: Any, batch_id: int) -> None:
        mode = sink.get("mode", "append")
        results.write.format(sink["format"]).options(**options).mode(mode).save()

    return write


def _options(settings: Mapping[str, Any], file: pathlib.Path) -> dict[str, Any]:
    options = dict(settings.get("options", {}))
    if "path" in options:
        options["path"] = _resolve(file, options["path"])
    return options


def _resolve(file: pathlib.Path, path: str) -> str:
    """Return a path relative to the folder of the file; URLs stay as they are."""
    return path if "://" in path else str(file.absolute().parent / path)
