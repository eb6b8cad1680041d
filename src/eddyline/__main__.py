"""`python -m eddyline`: the same as the command `eddyline`."""

from eddyline.cli.main import app

app(prog_name="eddyline")
