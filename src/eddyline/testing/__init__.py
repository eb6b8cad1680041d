"""Seeded synthetic data, for tests, benchmarks, the demo and anybody's own experiments."""
