"""The engine: many continuous queries over shared streams, run as one."""

from eddyline.spark.engine.engine import Engine
from eddyline.spark.engine.run import Run
from eddyline.spark.engine.sinks import callback

__all__ = ["Engine", "Run", "callback"]
