"""Tactics: each assigns rows to routes and observes what became of them, and does nothing else."""
