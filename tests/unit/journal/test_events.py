"""Every event travels as JSON, says itself in a sentence, and tells whether it changes routes."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any

import pytest

from eddyline.journal import Journal, Record
from eddyline.journal.events import (
    BudgetExhausted,
    Event,
    NoClassesFound,
    OrderChanged,
    TrialEnded,
    event_classes,
)

#: Events after which rows may take other routes; a trial's end depends on what was on trial.
CHANGING_ROUTES = {
    "ClassProbeOrderChanged",
    "ClassesDoubted",
    "ClassesDropped",
    "ClassesFound",
    "ClassifiersChosen",
    "DriftDetected",
    "NativeReordered",
    "OrderChanged",
    "ProbeClassesAdopted",
    "ProbeClassesDropped",
    "ProbeClassesFound",
    "ProbeClassesReverted",
    "ProbeOrderChanged",
    "TrialEnded",
}


def example_value(hint: Any) -> Any:
    """Return a value of an annotated type that is not its default."""
    if typing.get_origin(hint) is typing.Literal:
        return typing.get_args(hint)[-1]
    if typing.get_origin(hint) is types.UnionType:
        return example_value(typing.get_args(hint)[0])
    if typing.get_origin(hint) is tuple:
        return ("<first>", "second")
    if hint in (int, float, str):
        return {int: 3, float: 2.5, str: "a 'text' with <b>"}[hint]
    return {"predicate": 1.5}


def example(cls: type[Event]) -> Event:
    hints = typing.get_type_hints(cls)
    return cls(**{f.name: example_value(hints[f.name]) for f in dataclasses.fields(cls)})


@pytest.mark.parametrize("cls", event_classes(), ids=lambda cls: cls.__name__)
class TestEveryEvent:
    def test_travels_as_json(self, cls) -> None:
        record = Record(example(cls), 17, "worker 1")
        travelled = Record.from_dict(json.loads(json.dumps(record.to_dict())))
        assert travelled == record
        assert type(travelled.event) is cls

    def test_says_itself_in_one_line(self, cls) -> None:
        event = example(cls)
        sentence = event.sentence()
        assert sentence
        assert "\n" not in sentence
        assert sentence in str(Record(event, 17, "worker 1"))

    def test_knows_whether_it_changes_routes(self, cls) -> None:
        assert example(cls).changes_routes == (cls.__name__ in CHANGING_ROUTES)


def trial(subject: str, verdict: str) -> TrialEnded:
    return TrialEnded(
        subject=subject,
        method="split",
        verdict=verdict,
        before=("a",),
        after=("b",),
        rows=10,
        before_us=1.0,
        after_us=2.0,
    )


def test_an_order_that_stays_in_use_changes_no_routes() -> None:
    assert not trial("order", "kept").changes_routes
    assert trial("order", "reverted").changes_routes
    assert trial("classes", "kept").changes_routes
    assert not BudgetExhausted(share=0.1).changes_routes


def test_a_journal_finds_events_by_class_and_by_consequence() -> None:
    journal = Journal()
    change = Record(OrderChanged(before=("a", "b"), after=("b", "a")), 5)
    journal.extend([Record(BudgetExhausted(share=0.1)), change])
    assert journal.of(OrderChanged) == [change]
    assert journal.of(BudgetExhausted, OrderChanged) == list(journal)
    assert journal.route_changes() == [change]


def test_a_search_that_would_cost_next_to_nothing_more_saves_zero() -> None:
    found = NoClassesFound(
        rows=100, saving_us=-0.001, noise_us=0.0, single_us=5.0, explored=3, seconds=0.1, stopped=""
    )
    assert "(saves 0.00 ± 0.00 of 5.00 µs a row" in found.sentence()
