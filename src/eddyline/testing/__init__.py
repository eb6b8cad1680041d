"""Seeded synthetic data and checks of policies, for tests, benchmarks and experiments.

Answers come first: `draw_answers` draws which row passes which predicate, with given selectivities
and correlations. The rows are then made to fit, either as texts with marker words for predicates
that do real work, or as plain columns of answers for operators whose cost can be set.

Examples
--------
Texts, and Python predicates that look for the markers in them:

>>> import numpy as np
>>> from eddyline.testing import draw_answers, generate_texts, word_predicate
>>> answers = draw_answers(np.random.default_rng(0), 1_000, [0.9, 0.1], correlation=1)
>>> texts = generate_texts(np.random.default_rng(1), answers)
>>> predicates = [word_predicate(number) for number in (0, 1)]
>>> [sum(map(predicate, texts)) for predicate in predicates] == answers.sum(axis=0).tolist()
True

Operators over columns of answers, for a router without Spark:

>>> from eddyline.testing import make_filters, to_columns
>>> filters, readers = make_filters(probes=[0, 10])
>>> [each.name for each in filters], len(to_columns(answers))
(['F0', 'F1'], 2)

`eddyline.testing.policy_checks` has the suite that every ordering policy must pass.

"""

from eddyline.testing.synthetic import SyntheticFilter, draw_answers, make_filters, to_columns
from eddyline.testing.texts import (
    TextPredicate,
    generate_texts,
    three_kinds,
    word_predicate,
    write_parquet,
)

__all__ = [
    "SyntheticFilter",
    "TextPredicate",
    "draw_answers",
    "generate_texts",
    "make_filters",
    "three_kinds",
    "to_columns",
    "word_predicate",
    "write_parquet",
]
