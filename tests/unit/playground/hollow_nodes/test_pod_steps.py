"""When a deleted pod has stopped, and what a node keeps right in its own status."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.k8s.model.core import Node, NodeStatus
from kubesched.k8s.model.reported_pods import ReportedPodStatus
from kubesched.playground.hollow_nodes.containers import (
    ExecAction,
    HollowContainer,
    HollowMeta,
    HollowPod,
    HollowPodSpec,
    Lifecycle,
    LifecycleHandler,
    SleepAction,
)
from kubesched.playground.hollow_nodes.fleet import allocatable_patch, full_name, images_body
from kubesched.playground.hollow_nodes.pod_plays import Delays, stops_in_s

DELAYS = Delays(start_s=2.0, stop_s=3.0)


def _going(phase: str = "Running", grace: int | None = 30, hook: LifecycleHandler | None = None) -> HollowPod:
    metadata = HollowMeta(name="p", deletion_timestamp="2027-01-15T08:00:30Z", deletion_grace_period_seconds=grace)
    container = HollowContainer(name="c", lifecycle=Lifecycle(pre_stop=hook))
    return HollowPod(metadata, HollowPodSpec((container,)), ReportedPodStatus(phase))


def _sleep(seconds: int) -> LifecycleHandler:
    return LifecycleHandler(sleep=SleepAction(seconds))


def _exec(*command: str) -> LifecycleHandler:
    return LifecycleHandler(exec=ExecAction(command))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(_going(), (3.0, 143), id="asked to stop"),
        pytest.param(_going(grace=None), (3.0, 143), id="with the usual grace"),
        pytest.param(_going(grace=1), (1.0, 137), id="killed, for it is slow"),
        pytest.param(_going(hook=_sleep(15)), (18.0, 143), id="after its hook"),
        pytest.param(_going(hook=_sleep(60)), (30.0, 137), id="killed in its hook"),
        pytest.param(_going(hook=_exec("sh", "-c", "sleep 15")), (18.0, 143), id="a hook that says how long it takes"),
        pytest.param(_going(hook=_exec("nginx", "-s", "quit")), (3.0, 143), id="a hook of which nobody knows"),
        pytest.param(_going(hook=_exec("sleep", "infinity")), (30.0, 137), id="a hook without an end"),
        pytest.param(_going("Succeeded", hook=_sleep(15)), (3.0, 143), id="over already"),
        pytest.param(_going("Pending", hook=_sleep(15)), (3.0, 143), id="never begun"),
    ],
)
def test_a_deleted_pod_takes_its_hooks_and_its_grace(pod: HollowPod, expected: tuple[float, int]) -> None:
    assert stops_in_s(pod, DELAYS) == expected


@pytest.mark.parametrize(
    ("capacity", "allocatable", "patch"),
    [
        pytest.param({"cpu": "8"}, {"cpu": "7"}, {}, id="of the machine itself, nothing"),
        pytest.param({"a.com/fake": "3"}, {}, {"a.com/fake": "3"}, id="new"),
        pytest.param({"a.com/fake": "5"}, {"a.com/fake": "3"}, {"a.com/fake": "5"}, id="changed"),
        pytest.param({"a.com/fake": "5"}, {"a.com/fake": "5"}, {}, id="right already"),
        pytest.param({}, {"a.com/fake": "5", "cpu": "1"}, {"a.com/fake": None}, id="taken away"),
    ],
)
def test_extended_resources_of_the_capacity_are_allocatable(
    capacity: dict[str, Any], allocatable: dict[str, Any], patch: dict[str, Any]
) -> None:
    node = Node(status=NodeStatus(capacity=capacity, allocatable=allocatable))
    assert allocatable_patch(node) == patch


def test_images_have_tags_and_the_newest_fifty_are_listed() -> None:
    names = [full_name(image) for image in ("nginx", "a.io:5000/b", "a.io/b:1", "a@sha256:0")]
    assert names == ["nginx:latest", "a.io:5000/b:latest", "a.io/b:1", "a@sha256:0"]
    listed = images_body([f"i:{number}" for number in range(60)])
    assert (len(listed), listed[-1]["names"]) == (50, ["i:59"])
