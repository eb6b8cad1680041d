"""`el.where`: the driver side, and the worker side in `worker`.

Nothing is imported here: workers load little.
"""
