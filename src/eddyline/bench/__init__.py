"""Benchmarks: each a subcommand of `eddyline bench`, seeded, with its numbers as JSON."""
