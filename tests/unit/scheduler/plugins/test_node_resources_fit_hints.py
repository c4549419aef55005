"""NodeResourcesFit's requeueing: which changes give a rejected pod another try."""

from __future__ import annotations

import pytest
from resource_tables import GPU, ResourceTable, as_node, as_pod, device_class

from kubesched.framework import ActionType, EventResource, Hint
from kubesched.k8s.model import manifests
from kubesched.k8s.model.resource import DeviceClass
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.testing import make
from kubesched.testing.make import Manifest


def _hint(event: EventResource, pod: Manifest, old: object, new: object, *objects: Manifest) -> Hint:
    table = ResourceTable(pod, *objects)
    (found,) = [e for e in NodeResourcesFit(None, table.handle).events_to_register() if e.event.resource is event]
    assert found.hint is not None
    return found.hint(table.pod, old, new)


def test_the_events_that_can_help() -> None:
    table = ResourceTable(make.pod("p"))
    events = {e.event.resource: e.event.action for e in NodeResourcesFit(None, table.handle).events_to_register()}
    assert events == {
        EventResource.POD: ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN,
        EventResource.NODE: ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE,
        EventResource.DEVICE_CLASS: ActionType.ADD | ActionType.UPDATE,
    }


NOMINATED = make.pod("q", cpu="1", status={"nominatedNodeName": "a"})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(make.pod("q", on="a"), None, Hint.QUEUE, id="a pod on a node is gone"),
        pytest.param(NOMINATED, None, Hint.QUEUE, id="a nominated pod is gone"),
        pytest.param(make.pod("q"), None, Hint.SKIP, id="a pending pod is gone"),
        pytest.param(make.pod("p", cpu="3"), make.pod("p", cpu="2"), Hint.QUEUE, id="the pod itself asks for less"),
        pytest.param(
            make.pod("q", on="a", cpu="3"), make.pod("q", on="a", cpu="2"), Hint.QUEUE, id="another gives back"
        ),
        pytest.param(
            make.pod("q", on="a", cpu="2"), make.pod("q", on="a", cpu="3"), Hint.SKIP, id="another takes more"
        ),
        pytest.param(
            make.pod("q", on="a", memory="2Gi"),
            make.pod("q", on="a", memory="1Gi"),
            Hint.SKIP,
            id="another gives back what is not asked for",
        ),
        pytest.param(make.pod("q", cpu="3"), make.pod("q", cpu="2"), Hint.SKIP, id="a pending pod asks for less"),
    ],
)
def test_changes_of_pods(old: Manifest, new: Manifest | None, expected: Hint) -> None:
    pod = make.pod("p", cpu="2", memory="0")
    assert _hint(EventResource.POD, pod, as_pod(old), None if new is None else as_pod(new)) is expected


CLASS = device_class("gpus", resource=GPU)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(
            make.pod("p", cpu="2"), None, make.node("a", cpu="2"), Hint.QUEUE, id="a node that is large enough"
        ),
        pytest.param(make.pod("p", cpu="2"), None, make.node("a", cpu="1"), Hint.SKIP, id="a node that is too small"),
        pytest.param(make.pod("p"), None, make.node("a", pods=0), Hint.SKIP, id="a node for no pods"),
        pytest.param(
            make.pod("p", cpu="2"), make.node("a", cpu="2"), make.node("a", cpu="3"), Hint.QUEUE, id="it grew in cpu"
        ),
        pytest.param(
            make.pod("p", cpu="2"),
            make.node("a", memory="1Gi"),
            make.node("a", memory="2Gi"),
            Hint.SKIP,
            id="it grew in what is not asked for",
        ),
        pytest.param(
            make.pod("p", cpu="2"), make.node("a", cpu="4"), make.node("a", cpu="3"), Hint.SKIP, id="it shrank"
        ),
        pytest.param(
            make.pod("p"), make.node("a", pods=1), make.node("a", pods=2), Hint.QUEUE, id="it takes more pods"
        ),
        pytest.param(make.pod("p"), make.node("a", cpu=1), make.node("a", cpu=2), Hint.SKIP, id="nothing is asked for"),
        pytest.param(
            make.pod("p", requests={GPU: 1}),
            make.node("a"),
            make.node("a", allocatable={GPU: 1}),
            Hint.QUEUE,
            id="it reports the resource now",
        ),
        pytest.param(
            make.pod("p", requests={GPU: 1}), make.node("a"), make.node("a", cpu=9), Hint.QUEUE, id="devices may do"
        ),
        pytest.param(
            make.pod("p", requests={"example.com/nic": 1}), None, make.node("a"), Hint.SKIP, id="no devices for that"
        ),
    ],
)
def test_changes_of_nodes(pod: Manifest, old: Manifest | None, new: Manifest, expected: Hint) -> None:
    before = None if old is None else as_node(old)
    assert _hint(EventResource.NODE, pod, before, as_node(new), CLASS) is expected


def _as_class(manifest: Manifest) -> DeviceClass:
    (found,) = manifests.from_dicts([manifest]).objects
    assert isinstance(found, DeviceClass)
    return found


@pytest.mark.parametrize(
    ("asked", "old", "new", "expected"),
    [
        pytest.param(GPU, None, CLASS, Hint.QUEUE, id="a class for the resource"),
        pytest.param(GPU, None, device_class("gpus"), Hint.SKIP, id="a class for no resource"),
        pytest.param("example.com/nic", None, CLASS, Hint.SKIP, id="a class for another resource"),
        pytest.param(
            "deviceclass.resource.kubernetes.io/gpus", None, device_class("gpus"), Hint.QUEUE, id="the class itself"
        ),
        pytest.param(
            "deviceclass.resource.kubernetes.io/gpus",
            device_class("gpus"),
            CLASS,
            Hint.SKIP,
            id="which was there before",
        ),
        pytest.param(GPU, device_class("gpus"), CLASS, Hint.QUEUE, id="a class that now stands for the resource"),
        pytest.param(GPU, CLASS, CLASS, Hint.SKIP, id="nothing new about the name"),
        pytest.param(GPU, CLASS, device_class("gpus"), Hint.SKIP, id="a class that no longer stands for it"),
    ],
)
def test_changes_of_device_classes(asked: str, old: Manifest | None, new: Manifest, expected: Hint) -> None:
    pod = make.pod("p", requests={asked: "1"})
    before = None if old is None else _as_class(old)
    assert _hint(EventResource.DEVICE_CLASS, pod, before, _as_class(new)) is expected
