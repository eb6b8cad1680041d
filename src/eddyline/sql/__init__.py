"""From the SQL text of a continuous query to a `Query`.

The steps are the tuple `STEPS` in `eddyline.sql.parse`; each is in the module named after it.
This package imports none of its modules: a worker must not load the SQL parser
(`docs/decisions/0014`).
"""
