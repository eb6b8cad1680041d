"""Trials: a change is kept only if it measured better than what it replaced."""
