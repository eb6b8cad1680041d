"""The engine: many continuous queries over shared streams, run as one.

Nothing is imported here, because workers import `worker` but not the engine.
"""
