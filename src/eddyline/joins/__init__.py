"""Windowed joins of many streams through one SteM for each: state, plans of probes, execution."""
