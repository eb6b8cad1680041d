"""Eddyline on Spark: the public functions, and what runs in the driver and in the workers."""

from eddyline.spark.engine import Engine, Run, callback
from eddyline.spark.predicates import lookup, udf
from eddyline.spark.where import Where, where

__all__ = ["Engine", "Run", "Where", "callback", "lookup", "udf", "where"]
