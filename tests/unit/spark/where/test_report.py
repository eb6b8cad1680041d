"""What the report says about native conditions that a policy does not order."""

from __future__ import annotations

import pytest

import eddyline as el
from eddyline.ordering import POLICIES
from eddyline.ordering.as_written import AsWritten

NATIVE = ("id < 10", "id > 2")


@pytest.mark.parametrize("name", [*(p for p in POLICIES if p != "as_written"), "content", "auto"])
def test_a_policy_that_leaves_native_conditions_alone_says_so(name: str) -> None:
    report = el.where(*NATIVE, policy=name).report()
    assert report.native_as_written.startswith(f'policy "{name}" orders')
    assert report.to_dict()["native_as_written"] == report.native_as_written
    assert "native predicates keep their written order: policy" in " ".join(str(report).split())


@pytest.mark.parametrize("policy", ["mesh", el.MeshOptions(), "as_written", AsWritten()])
def test_a_policy_that_orders_them_or_nothing_at_all_has_nothing_to_say(policy) -> None:
    report = el.where(*NATIVE, policy=policy).report()
    assert report.native_as_written == ""
    assert "keep their written order" not in str(report)


def test_with_a_sample_auto_orders_them() -> None:
    assert el.where(*NATIVE, sample=object()).report().native_as_written == ""


def test_one_native_condition_has_no_order() -> None:
    one = el.where(NATIVE[0], el.udf(lambda i: i > 2, "id"), policy="agreedy")
    assert one.report().native_as_written == ""
