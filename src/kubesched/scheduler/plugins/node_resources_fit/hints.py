"""When a pod that did not fit deserves another try: room was made, a node came or grew, or devices now stand for
a resource that it asks for.

Next: `filtering`, for what fits.
"""

from __future__ import annotations

from kubesched.framework import Hint, Objects, PodInfo
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.requests import PODS, node_units, pod_resources
from kubesched.k8s.model.resource import DEVICE_CLASS_RESOURCE_PREFIX, DeviceClass
from kubesched.scheduler.plugins.node_resources_fit.filtering import PodDemands, demands_of


class FitHints:
    """Asks the cluster's device classes as they are when the event is looked at."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def after_pod_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if isinstance(new, Pod):
            return _queue_if(isinstance(old, Pod) and _is_scaled_down_for(pod, old, new))
        return _queue_if(isinstance(old, Pod) and bool(old.spec.node_name or old.status.nominated_node_name))

    def after_node_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if not isinstance(new, Node):
            return Hint.SKIP
        demands = demands_of(pod.resources.wanted, self._objects.device_classes)
        now = _allocatable(new)
        if not demands.fits_empty_node(now):
            return Hint.SKIP
        return _queue_if(not isinstance(old, Node) or _has_grown_for(demands, _allocatable(old), now))

    def after_device_class_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if not isinstance(new, DeviceClass):
            return Hint.SKIP
        wanted, declared = pod.resources.wanted, new.spec.extended_resource_name
        if isinstance(old, DeviceClass):
            if (old.spec.extended_resource_name or "") == (declared or ""):
                return Hint.SKIP
        elif DEVICE_CLASS_RESOURCE_PREFIX + new.name in wanted:
            return Hint.QUEUE
        return _queue_if(declared is not None and declared in wanted)


def _is_scaled_down_for(pod: PodInfo, old: Pod, new: Pod) -> bool:
    """Whether the pod itself asks for less now, or a pod on a node gives back some of what this one asks for."""
    if (new.metadata.uid or new.pod_key) == pod.uid:
        return True
    if not new.spec.node_name:
        return False
    before, after = pod_resources(old).requests, pod_resources(new).requests
    return any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in pod.resources.requests.items())


def _has_grown_for(demands: PodDemands, before: dict[str, int], now: dict[str, int]) -> bool:
    if now.get(PODS, 0) > before.get(PODS, 0):
        return True
    return any(
        now.get(demand.resource, 0) > before.get(demand.resource, 0)
        or (demand.has_devices and now.get(demand.resource, 0) <= 0)
        for demand in demands.demands
    )


def _allocatable(node: Node) -> dict[str, int]:
    return node_units(node.status.allocatable, f"node {node.name}: status.allocatable")


def _queue_if(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP
