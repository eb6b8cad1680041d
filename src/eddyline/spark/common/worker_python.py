"""Can the Python that Spark starts for its workers run Eddyline? Said before a job fails."""

from __future__ import annotations

import functools
import os
import pathlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from eddyline.errors import EddylineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRIAL_S = 60.0
_TRIAL = "import sys; print('%d.%d' % sys.version_info[:2]); import pyarrow, eddyline"
#: Settings that bring packages along, which a trial on the driver would not find.
_BRINGS_PACKAGES = ("spark.submit.pyFiles", "spark.archives", "spark.files")


def check_worker_python(spark: SparkSession) -> None:
    """Raise if the workers of a local session start a Python that cannot run Eddyline.

    The workers' Python is `PYSPARK_PYTHON`, else the first `python3` on the PATH, which is another
    one where a program is started as `.venv/bin/python program.py`. It is tried once; where it
    is this program's own Python, nothing is. In Connect and on clusters nothing is checked: the
    workers' machines and packages cannot be seen from here.

    Raises
    ------
    EddylineError
        If that Python is missing, has another version, or cannot import Eddyline.

    Examples
    --------
    >>> check_worker_python(spark)  # all is well

    """
    context: Any = getattr(spark, "_sc", None)  # None in Connect
    if context is None or not str(context.master).startswith("local"):
        return
    fault = fault_of(context.pythonExec, context.environment.get("PYTHONPATH", ""))
    if fault is None:
        return
    if context._python_includes or any(context.getConf().get(key) for key in _BRINGS_PACKAGES):
        return
    raise EddylineError(
        f"Spark's workers would run {context.pythonExec}, which {fault}; this program runs "
        f"{sys.executable}. Let the workers run the same: export "
        f"PYSPARK_PYTHON={sys.executable} before the program starts, or write "
        f'os.environ["PYSPARK_PYTHON"] = sys.executable before the Spark session is made'
    )


@functools.lru_cache(maxsize=16)
def fault_of(python: str, search_path: str = "") -> str | None:
    """Return why a Python cannot run Eddyline in a worker; None if it can.

    Parameters
    ----------
    python
        Name or path of the interpreter.
    search_path
        `PYTHONPATH` that workers get in addition.

    Examples
    --------
    >>> fault_of(sys.executable) is None
    True
    >>> fault_of("python-of-no-machine")
    'does not exist'

    """
    found = shutil.which(python)
    if found is None:
        return "does not exist"
    if pathlib.Path(found).absolute() == pathlib.Path(sys.executable).absolute():
        return None
    paths = [path for path in (search_path, os.environ.get("PYTHONPATH", "")) if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    try:
        trial = subprocess.run(
            [found, "-c", _TRIAL],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TRIAL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None  # a slow machine proves nothing
    except OSError as error:
        return f"cannot be started ({error.strerror})"
    version, own = trial.stdout.strip(), ".".join(map(str, sys.version_info[:2]))
    if version and version != own:
        return f"is Python {version} instead of {own}"
    if trial.returncode != 0:
        last = trial.stderr.strip().splitlines()[-1:] or [f"exit code {trial.returncode}"]
        return f"cannot import Eddyline ({last[0]})"
    return None
