"""Eddyline on Spark: the public functions, and what runs in the driver and in the workers.

Nothing is imported here: a new worker should not have to wait for what only the driver uses.
"""
