"""From SQL text to what an eddy can share: parse, resolve, normalise, take apart.

Nothing is imported here: workers need the parts of a query, but not what reads SQL.
"""
