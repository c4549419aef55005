"""What the page shows of nodes, pods and the queue, and what it calls a change."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from shown_cluster import NOW_S, ShownCluster, node, pod

from kubesched.k8s.model.scheduling import PodGroup
from kubesched.playground.web.stream import (
    MOST_QUEUED,
    StateReader,
    changes,
    group_row,
    node_row,
    pod_row,
    pod_state,
    queue_rows,
    same_queue,
)

WAITING = {"pod": "shop/p", "uid": "u", "priority": 0, "attempts": 1, "waitingSeconds": 5.0}


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        pytest.param(pod("p"), "pending", id="a pod without a node waits"),
        pytest.param(pod("p", "n"), "starting", id="a bound pod that does not run starts"),
        pytest.param(pod("p", "n", "Running"), "running", id="a pod runs"),
        pytest.param(pod("p", "n", "Running", deletionTimestamp="2026-01-01T00:00:00Z"), "terminating", id="it leaves"),
        pytest.param(pod("p", "n", "Succeeded", deletionTimestamp="2026-01-01T00:00:00Z"), "succeeded", id="it ended"),
        pytest.param(pod("p", "n", "Failed"), "failed", id="it failed"),
    ],
)
def test_a_pod_is_in_one_of_six_states(shown: Any, state: str) -> None:
    assert pod_state(shown) == state


def test_a_node_is_shown_with_its_labels_and_what_it_can_hold() -> None:
    amounts = {"cpu": 4000, "memory": 8 * 2**30, "pods": 110, "nvidia.com/gpu": 4}
    assert node_row(node("n", amounts={"nvidia.com/gpu": "4", "example.com/none": "0"})) == {
        "amounts": amounts,
        "labels": {"topology.kubernetes.io/zone": "a"},
    }


@pytest.mark.parametrize(
    ("ready", "shown"),
    [("True", {}), ("False", {"notReady": True}), ("Unknown", {"notReady": True, "silent": True})],
)
def test_a_node_that_fell_silent_is_told_from_one_that_is_not_ready(ready: str, shown: dict[str, bool]) -> None:
    row = node_row(node("n", ready=ready))
    assert {name: row[name] for name in ("notReady", "silent") if name in row} == shown


def test_what_keeps_pods_from_a_node_is_shown() -> None:
    row = node_row(node("n", unschedulable=True, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]))
    assert (row["unschedulable"], row["taints"]) == (True, ["k=v:NoSchedule"])


def _group(**fields: Any) -> PodGroup:
    return msgspec.convert({"metadata": {"namespace": "ml", "name": "g"}, **fields}, PodGroup)


@pytest.mark.parametrize(
    ("conditions", "state", "message"),
    [
        pytest.param([], "waiting", "", id="nothing is told yet"),
        pytest.param([{"status": "True", "reason": "Scheduled", "message": "all"}], "scheduled", "", id="scheduled"),
        pytest.param([{"status": "False", "message": "no room"}], "unschedulable", "no room", id="no room"),
    ],
)
def test_a_group_is_shown_with_what_the_scheduler_said(
    conditions: list[dict[str, str]], state: str, message: str
) -> None:
    told = [{"type": "PodGroupScheduled", **one} for one in conditions]
    row = group_row(_group(status={"conditions": told}))
    assert (row["state"], row.get("message", "")) == (state, message)


def test_a_group_is_shown_with_what_it_needs() -> None:
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 8}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "disruptionMode": "PodGroup",
        "priority": 7,
        "parentCompositePodGroupName": "all",
    }
    assert group_row(_group(spec=spec)) == {
        "state": "waiting",
        "needs": 8,
        "topology": "rack",
        "priority": 7,
        "whole": True,
        "parent": "all",
    }


def test_a_pod_is_shown_with_what_it_asks_for_and_who_owns_it() -> None:
    owner = {"kind": "ReplicaSet", "name": "web", "controller": True}
    row = pod_row(pod("p", "n", creationTimestamp="2026-01-01T00:00:00Z", ownerReferences=[owner]))
    assert row == {
        "state": "starting",
        "asks": {"cpu": 500, "memory": 2**30},
        "node": "n",
        "owner": "ReplicaSet/web",
        "created": 1767225600.0,
    }


def test_the_queue_is_shown_with_times_of_day_and_counted_whole() -> None:
    shown = queue_rows({"backoff": [WAITING | {"backoffSeconds": 2.0}], "gated": [WAITING] * (MOST_QUEUED + 1)}, NOW_S)
    (waiting,) = shown["pods"]["backoff"]
    assert (waiting["since"], waiting["until"]) == (NOW_S - 5, NOW_S + 2)
    assert shown["counts"]["gated"] == MOST_QUEUED + 1
    assert len(shown["pods"]["gated"]) == MOST_QUEUED


def test_time_that_passes_is_no_change_of_the_queue() -> None:
    before = queue_rows({"active": [WAITING]}, NOW_S)
    assert same_queue(before, queue_rows({"active": [WAITING]}, NOW_S + 1))
    assert not same_queue(before, queue_rows({"active": [WAITING | {"attempts": 2}]}, NOW_S))


def test_changes_name_what_is_new_and_what_is_gone() -> None:
    cluster = ShownCluster()
    cluster.put(node("n"), pod("old"), pod("moved"), pod("same"))
    reader = StateReader(cluster.sources(), lambda: NOW_S)
    before = reader.read()
    del cluster.pods["shop/old"]
    cluster.put(pod("moved", "n"), pod("same", resourceVersion="7"))
    found = changes(before, reader.read())
    assert list(found) == ["pods"]
    assert (list(found["pods"]["put"]), found["pods"]["gone"]) == (["shop/moved"], ["shop/old"])
    assert changes(reader.read(), reader.read()) == {}
