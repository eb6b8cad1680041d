"""Joins streams in PyFlink: a program of its own, for an interpreter that has PyFlink.

`python flink_job.py REQUEST` reads a JSON file (see `Request` in joins_flink.py) and prints one
line of JSON: the seconds of each run, and the operators of the plan. A run counts from the job's
creation in Flink's cluster to its end: the JVM has started before, and the first run, in which it
loads and compiles code, is left to the caller to discard.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import sys
from typing import Any


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Run the request; return what to print."""
    from pyflink.table import EnvironmentSettings, TableEnvironment
    from pyflink.version import __version__

    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", str(request["parallelism"]))
    for name, value in request["settings"].items():
        env.get_config().set(name, value)
    for name, path in request["sources"].items():
        env.execute_sql(source_ddl(name, path, is_timed=request["is_timed"]))
    query = env.sql_query(request["sql"])
    columns = ", ".join(f"`{name}` BIGINT" for name in request["columns"])
    seconds = []
    for run in range(request["runs"]):
        target = pathlib.Path(request["results"])
        shutil.rmtree(target, ignore_errors=True)
        env.execute_sql(f"CREATE TABLE sink{run} ({columns}) WITH ({request['sink']})")
        client = query.execute_insert(f"sink{run}").get_job_client()
        seconds.append(client.get_job_execution_result().result().get_net_runtime() / 1000)
    named = re.findall(r"\b(?:Interval|Multi)?Join\(", query.explain().split("Optimized Exec")[-1])
    return {
        "version": __version__,
        "seconds": seconds,
        "operators": [name.rstrip("(") for name in named],
    }


def source_ddl(name: str, path: str, is_timed: bool) -> str:
    """Return the declaration of a stream in a CSV file, with an event time or without."""
    time = ", ts AS TO_TIMESTAMP_LTZ(t, 3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
    return (
        f"CREATE TABLE {name} (k BIGINT, v BIGINT, t BIGINT{time if is_timed else ''}) "
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
    )


if __name__ == "__main__":
    print(json.dumps(main(json.loads(pathlib.Path(sys.argv[1]).read_text()))))
