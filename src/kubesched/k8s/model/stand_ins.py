"""What an object that does not decode may count as, so that no decision goes wrong for want of it.

What takes room or restricts others counts as far as it is known: a pod on its node, a node and the pods on it (but no
pod is sent there), an allocated claim, a disruption budget. What offers something, or asks for something, is not there
until it can be read: a pending pod is not scheduled, a volume not chosen.

Next: `partial_reading`, which reads what can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from kubesched.k8s.model import apps, core, resource, storage
from kubesched.k8s.model.meta import KubeObject, ObjectMeta

K = TypeVar("K", bound=KubeObject)

HIGHEST_PRIORITY = 2**31 - 1


class UnreadPod(core.Pod, frozen=True):
    """A pod without a node that cannot be read in full: it must not be scheduled, but it exists."""


StandIn = Callable[[Any, Sequence[str]], Any]
"""Of what can be read of an object, and what cannot, what the object counts as; `None`: nothing."""


def stand_in_for(item: K, problems: Sequence[str]) -> K | None:
    """For a scheduler. `item` is what can be read. `None` if it is safest to do without."""
    make: StandIn = _STAND_INS.get(type(item), _nothing)
    found: K | None = make(item, problems)
    return found


def as_far_as_read(item: K, _problems: Sequence[str]) -> K:
    """For who must not take an object for gone because a field of it cannot be read: it would be recreated, or what
    belongs to it cleaned up."""
    return item


def described(stand_in: KubeObject | None) -> str:
    """What is counted now, for the log."""
    if isinstance(stand_in, core.Pod):
        node = stand_in.spec.node_name
        return f"a pod on {node}, as far as it can be read" if node else "a pod that is not scheduled"
    if isinstance(stand_in, core.Node) and (stand_in.status.allocatable or {}).get("pods") == "0":
        return "a node that takes no more pods"
    return "nothing" if stand_in is None else "what can be read of it"


def bare_stand_in_for(item: KubeObject) -> KubeObject | None:
    """The least that a pod on a node, or a node, counts as, if even what was read of it cannot be used."""
    metadata = item.metadata
    name = ObjectMeta(metadata.name, metadata.namespace, metadata.uid, metadata.resource_version)
    if isinstance(item, core.Pod) and item.spec.node_name:
        spec = core.PodSpec(
            node_name=item.spec.node_name, scheduler_name=item.spec.scheduler_name, priority=HIGHEST_PRIORITY
        )
        return core.Pod(name, spec)
    if isinstance(item, core.Node):
        return _node(core.Node(name), ())
    return None


def _nothing(_item: KubeObject, _problems: Sequence[str]) -> None:
    return None


def _pod(pod: core.Pod, problems: Sequence[str]) -> core.Pod:
    """On its node it takes what is known of its requests. One whose priority is not known is nobody's victim."""
    if not pod.spec.node_name:
        return UnreadPod(pod.metadata, pod.spec, pod.status)
    if any(problem.startswith(("spec.priority:", "spec:")) for problem in problems):
        return replace(pod, spec=replace(pod.spec, priority=HIGHEST_PRIORITY))
    return pod


def _node(node: core.Node, _problems: Sequence[str]) -> core.Node:
    """Its labels still tell where its pods are; it is cordoned and has room for none, whatever a pod tolerates."""
    allocatable = {**(node.status.allocatable or {}), "pods": "0"}
    return replace(
        node, spec=replace(node.spec, unschedulable=True), status=replace(node.status, allocatable=allocatable)
    )


def _claim(claim: resource.ResourceClaim, _problems: Sequence[str]) -> resource.ResourceClaim | None:
    """Devices that are allocated stay so; a claim that has none gets none."""
    return None if claim.status.allocation is None else claim


def _csi_node(node: storage.CSINode, problems: Sequence[str]) -> storage.CSINode:
    """A limit that cannot be read is none that may be counted on: no more volumes of that driver."""
    if not any("allocatable" in problem for problem in problems):
        return node
    none = storage.VolumeNodeResources(count=0)
    drivers = tuple(
        replace(driver, allocatable=none) if driver.allocatable is None or driver.allocatable.count is None else driver
        for driver in node.spec.drivers
    )
    return replace(node, spec=replace(node.spec, drivers=drivers))


_STAND_INS: dict[type[KubeObject], Callable[..., Any]] = {
    core.Pod: _pod,
    core.Node: _node,
    core.Namespace: as_far_as_read,
    core.Service: as_far_as_read,
    core.ReplicationController: as_far_as_read,
    apps.ReplicaSet: as_far_as_read,
    apps.StatefulSet: as_far_as_read,
    core.PodDisruptionBudget: as_far_as_read,
    storage.CSINode: _csi_node,
    storage.CSIDriver: as_far_as_read,
    storage.VolumeAttachment: as_far_as_read,
    resource.ResourceClaim: _claim,
}
"""All other kinds are not there until they can be read."""
