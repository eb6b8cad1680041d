"""Drift detectors, one to a file: feed one with `update`, then read `detected`."""
