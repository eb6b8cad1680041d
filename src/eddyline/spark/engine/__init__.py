"""The engine: many continuous queries over shared streams, run as one.

Nothing is imported here: workers need the flow, but not the engine.
"""
