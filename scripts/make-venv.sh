#!/bin/sh
# Make the virtual environment and install Eddyline with everything its tests and demo need.
set -eu
venv=$1
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    found=$("$python" --version 2>&1 || echo none)
    echo "Eddyline needs Python 3.11 or newer, and '$python' is $found." >&2
    echo "Install one and name it: make PYTHON=python3.12 setup" >&2
    exit 1
fi
if ! "$python" -m venv "$venv"; then
    echo "The venv module is missing. Debian, Ubuntu: sudo apt-get install python3-venv" >&2
    exit 1
fi
echo "Installing Eddyline and PySpark into $venv (some 450 MB; a few minutes the first time) ..."
"$venv/bin/python" -m pip install -q --disable-pip-version-check -e ".[spark,dev]"
