"""Whatever the cluster: a change that is told helps, none is larger than it must be, and trying leaves no trace."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from applied_changes import apply_change
from cluster_pictures import picture
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.explanation.answer import Explanation
from kubesched.explanation.changes import Change, what_if
from kubesched.k8s.model import quantity
from kubesched.simulator.asking import explain
from kubesched.testing import make, strategies
from kubesched.testing.make import Manifest


@settings(max_examples=60, deadline=None)
@given(strategies.clusters())
def test_every_change_makes_the_pod_fit_when_it_is_carried_out(objects: list[Manifest]) -> None:
    for change in _checked_changes(objects):
        event(change.kind.value)


def _checked_changes(objects: list[Manifest]) -> Iterator[Change]:
    key = strategies.pending_key(objects)
    for change in explain(objects, key).changes:
        yield change
        record = change.to_dict()
        after = explain(apply_change(objects, record), key)
        assert _helped(after, record), f"{change.description}: {after.to_dict()['message']}"


def _helped(after: Explanation, change: dict[str, Any]) -> bool:
    answer = after.to_dict()
    if change["kind"] == "raise-priority":
        preemption = answer["preemption"]
        return preemption is not None and preemption["node"] == change["node"]
    return bool(answer["nodes"].get(change["node"], {}).get("fit", False))


def test_the_property_sees_a_change_that_was_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: every proposal is taken for good."""
    monkeypatch.setattr(what_if.WhatIf, "fits_on", lambda _self, _actions: ("n0",))
    objects = [
        make.node("n0", cpu=1, taints=[make.taint("gpu")], labels={"disk": "1"}),
        make.node("n1", cpu=4, unschedulable=True),
        make.pod("pending", cpu=2, spec={"nodeSelector": {"disk": "2"}}),
    ]
    with pytest.raises(AssertionError):
        list(_checked_changes(objects))


@settings(max_examples=40, deadline=None)
@given(strategies.clusters())
def test_explaining_leaves_the_cluster_as_it_was(objects: list[Manifest]) -> None:
    explanation = explain(objects, strategies.pending_key(objects))
    explanation.cluster.rows_in_order  # noqa: B018
    before = picture(explanation.cluster)
    record = copy.deepcopy(explanation.to_dict())
    str(explanation)
    explanation.report()
    after = picture(explanation.cluster)
    after["labels"] = {key: after["labels"][key] for key in before["labels"]}  # columns are made when first asked for
    assert after == before
    assert explanation.to_dict() == record


@settings(max_examples=40, deadline=None)
@given(strategies.clusters())
def test_with_one_unit_more_the_pod_would_not_fit(objects: list[Manifest]) -> None:
    """A request is lowered as little as it can be, for one resource and one container."""
    key = strategies.pending_key(objects)
    for change in explain(objects, key).changes:
        record = change.to_dict()
        if record["kind"] == "lower-requests" and len(record["requests"]) == 1:
            event("lowered")
            assert not any(_fits(bolder, key) for bolder in _one_unit_more(objects, record))


def _one_unit_more(objects: list[Manifest], change: dict[str, Any]) -> Iterator[list[Manifest]]:
    ((resource, amounts),) = change["requests"].items()
    unit = quantity.NANO // 1000 if resource == "cpu" else quantity.NANO
    bolder = copy.deepcopy(change)
    (operation,) = bolder["actions"][0]["patch"]
    operation["value"] = str(quantity.Quantity(quantity.parse(amounts["to"]).nanos + unit))
    if quantity.parse(operation["value"]) < quantity.parse(amounts["from"]):
        yield apply_change(objects, bolder)


@settings(max_examples=40, deadline=None)
@given(strategies.clusters(), st.integers(1, 2))
def test_at_a_lower_priority_preemption_would_find_no_room(objects: list[Manifest], step: int) -> None:
    key = strategies.pending_key(objects)
    explanation = explain(objects, key)
    for change in explanation.changes:
        record = change.to_dict()
        if record["kind"] == "raise-priority":
            lower = record["priority"]["to"] - step
            if lower > record["priority"]["from"]:
                event("raised by more than one")
                record["actions"][0]["patch"][0]["value"] = lower
                assert not explain(apply_change(objects, record), key).to_dict()["preemption"]["node"]


def _fits(objects: list[Manifest], key: str) -> bool:
    return bool(explain(objects, key).fits)
