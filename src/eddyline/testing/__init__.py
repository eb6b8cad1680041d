"""For tests, benchmarks, the demo and your own experiments: seeded data, checks of policies."""
