"""Columns as attributes of rows: their kinds, partitions, information gain, and screening.

Query Mesh, content-based routing and the Spark layer share this package.
"""
