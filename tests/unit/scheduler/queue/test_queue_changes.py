"""Which events a changed object makes."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pytest

from kubesched.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ActionType, ClusterEvent, EventResource
from kubesched.k8s.model.core import Namespace, Node, Pod
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.resource import DeviceClass, ResourceClaim, ResourceSlice
from kubesched.k8s.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.scheduler.queue.changes import events_of

Json = dict[str, Any]


def pod(*, spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Pod:
    manifest = {"metadata": {"name": "p", "namespace": "ns", **metadata}, "spec": spec or {}, "status": status or {}}
    return msgspec.convert(manifest, Pod)


def asking(cpu: str, **more: str) -> Pod:
    requests = {"cpu": cpu, **more}
    return pod(spec={"containers": [{"name": "main", "resources": {"requests": requests}}]})


def node(*, spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Node:
    manifest = {"metadata": {"name": "n", **metadata}, "spec": spec or {}, "status": status or {}}
    return msgspec.convert(manifest, Node)


def labels(old: KubeObject | None, new: KubeObject | None) -> list[str]:
    return [event.label for event in events_of(old, new)]


BOUND = {"nodeName": "n"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, pod(), ["UnschedulablePodAdd"], id="an unscheduled pod came"),
        pytest.param(None, pod(spec=BOUND), ["AssignedPodAdd"], id="an assigned pod came"),
        pytest.param(pod(), pod(spec=BOUND), ["AssignedPodAdd"], id="a pod was bound"),
        pytest.param(pod(spec=BOUND), None, ["AssignedPodDelete"], id="an assigned pod went"),
        pytest.param(pod(), None, ["UnschedulablePodDelete"], id="an unscheduled pod went"),
        pytest.param(pod(), pod(resourceVersion="2"), ["UnschedulablePodUpdate"], id="nothing that has a name"),
        pytest.param(
            pod(spec=BOUND), pod(spec=BOUND, annotations={"a": "b"}), ["AssignedPodUpdate"], id="the same, assigned"
        ),
        pytest.param(pod(), pod(labels={"a": "b"}), ["UnschedulablePodUpdatePodLabel"], id="a new label"),
        pytest.param(pod(), pod(labels={}), ["UnschedulablePodUpdate"], id="no labels are no labels"),
        pytest.param(
            pod(),
            pod(spec={"tolerations": [{"operator": "Exists"}]}),
            ["UnschedulablePodUpdatePodToleration"],
            id="a new toleration",
        ),
        pytest.param(
            pod(spec={"schedulingGates": [{"name": "a"}]}),
            pod(),
            ["UnschedulablePodUpdatePodSchedulingGatesEliminated"],
            id="the last gate went",
        ),
        pytest.param(
            pod(spec={"schedulingGates": [{"name": "a"}, {"name": "b"}]}),
            pod(spec={"schedulingGates": [{"name": "a"}]}),
            ["UnschedulablePodUpdate"],
            id="one of two gates went",
        ),
        pytest.param(asking("2"), asking("1"), ["UnschedulablePodUpdatePodScaleDown"], id="asks for less"),
        pytest.param(asking("1"), asking("2"), ["UnschedulablePodUpdate"], id="asks for more"),
        pytest.param(asking("1"), asking("1000m"), ["UnschedulablePodUpdate"], id="asks for the same in other words"),
        pytest.param(
            asking("1", memory="1Gi"), asking("2"), ["UnschedulablePodUpdatePodScaleDown"], id="no longer asks for it"
        ),
        pytest.param(
            pod(status={"resourceClaimStatuses": []}),
            pod(status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]}),
            ["UnschedulablePodUpdatePodGeneratedResourceClaim"],
            id="a claim was made for it",
        ),
        pytest.param(
            pod(),
            pod(status={"extendedResourceClaimStatus": {"resourceClaimName": "x"}}),
            ["UnschedulablePodUpdatePodGeneratedResourceClaim"],
            id="a claim for its extended resources was made",
        ),
        pytest.param(
            asking("2"),
            pod(labels={"a": "b"}, spec={"tolerations": [{}]}),
            [
                "UnschedulablePodUpdatePodLabel",
                "UnschedulablePodUpdatePodScaleDown",
                "UnschedulablePodUpdatePodToleration",
            ],
            id="several at once",
        ),
    ],
)
def test_events_of_a_pod(old: Pod | None, new: Pod | None, expected: list[str]) -> None:
    assert labels(old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, node(), ["NodeAdd"], id="came"),
        pytest.param(node(), None, ["NodeDelete"], id="went"),
        pytest.param(node(), node(resourceVersion="2"), [], id="nothing that counts"),
        pytest.param(node(spec={"unschedulable": True}), node(), ["NodeUpdateNodeTaint"], id="uncordoned"),
        pytest.param(node(), node(spec={"unschedulable": True}), [], id="cordoned"),
        pytest.param(
            node(status={"allocatable": {"cpu": "1"}}),
            node(status={"allocatable": {"cpu": "2"}}),
            ["NodeUpdateNodeAllocatable"],
            id="more room",
        ),
        pytest.param(
            node(status={"allocatable": {"cpu": "1"}}),
            node(status={"allocatable": {"cpu": "1000m"}}),
            [],
            id="the same room in other words",
        ),
        pytest.param(node(), node(labels={"a": "b"}), ["NodeUpdateNodeLabel"], id="a label"),
        pytest.param(
            node(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}),
            node(),
            ["NodeUpdateNodeTaint"],
            id="no taint",
        ),
        pytest.param(node(spec={"taints": []}), node(), [], id="no taints are no taints"),
        pytest.param(
            node(status={"conditions": [{"type": "Ready", "status": "False"}]}),
            node(status={"conditions": [{"type": "Ready", "status": "True"}]}),
            ["NodeUpdateNodeCondition"],
            id="ready",
        ),
        pytest.param(
            node(status={"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}),
            node(status={"conditions": [{"type": "B", "status": "True"}, {"type": "A", "status": "True"}]}),
            [],
            id="the same conditions in another order",
        ),
        pytest.param(node(), node(annotations={"a": "b"}), ["NodeUpdateNodeAnnotation"], id="an annotation"),
        pytest.param(
            node(), node(status={"declaredFeatures": ["X"]}), ["NodeUpdateNodeDeclaredFeature"], id="a declared feature"
        ),
        pytest.param(
            node(spec={"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}]}),
            node(labels={"a": "b"}),
            ["NodeUpdateNodeTaint", "NodeUpdateNodeLabel", "NodeUpdateNodeTaint"],
            id="uncordoned, labelled, and without its taint",
        ),
    ],
)
def test_events_of_a_node(old: Node | None, new: Node | None, expected: list[str]) -> None:
    assert labels(old, new) == expected


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (PersistentVolume, "PersistentVolume"),
        (PersistentVolumeClaim, "PersistentVolumeClaim"),
        (StorageClass, "storage.k8s.io/StorageClass"),
        (CSINode, "storage.k8s.io/CSINode"),
        (CSIDriver, "storage.k8s.io/CSIDriver"),
        (CSIStorageCapacity, "storage.k8s.io/CSIStorageCapacity"),
        (VolumeAttachment, "storage.k8s.io/VolumeAttachment"),
        (ResourceClaim, "resource.k8s.io/ResourceClaim"),
        (ResourceSlice, "resource.k8s.io/ResourceSlice"),
        (DeviceClass, "resource.k8s.io/DeviceClass"),
    ],
)
def test_events_of_other_objects(kind: type[KubeObject], name: str) -> None:
    item = kind(metadata=ObjectMeta(name="x"))
    assert [labels(None, item), labels(item, item), labels(item, None)] == [
        [f"{name}Add"],
        [f"{name}Update"],
        [f"{name}Delete"],
    ]


def test_what_no_plugin_can_wait_for_makes_no_event() -> None:
    assert events_of(None, Namespace()) == ()
    assert events_of(None, None) == ()


def test_labels_are_those_of_kube_scheduler() -> None:
    assert UNSCHEDULABLE_TIMEOUT.label == "UnschedulableTimeout"
    assert FORCE_ACTIVATE.label == "ForceActivate"
    assert ClusterEvent(EventResource.WILDCARD, ActionType.ALL).label == "*All"
    assert {action.name for action in ActionType} >= {"ADD", "DELETE", "UPDATE_POD_SCALE_DOWN"}


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]},
        {"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
        {"allocatedResources": {"cpu": "1"}},
        {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]},
        {"extendedResourceClaimStatus": {"resourceClaimName": "p-gpu", "requestMappings": []}},
    ],
)
@pytest.mark.parametrize("node_name", ["", "n"])
def test_a_status_written_onto_the_same_pod_is_seen_as_in_a_pod_that_was_read_anew(
    status: Json, node_name: str
) -> None:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}], "nodeName": node_name}
    old, new = pod(spec=spec, labels={"app": "web"}), pod(spec=spec, labels={"app": "web"}, status=status)
    written = msgspec.structs.replace(old, status=new.status)
    assert events_of(old, written) == events_of(old, new)
    assert events_of(written, old) == events_of(new, old)


def test_an_event_is_the_same_wherever_it_comes_from() -> None:
    event = ClusterEvent(EventResource.NODE, ActionType.ADD)
    read = pickle.loads(pickle.dumps(event))
    assert (read, hash(read)) == (event, hash(event))
    assert event != ClusterEvent(EventResource.NODE, ActionType.DELETE)
