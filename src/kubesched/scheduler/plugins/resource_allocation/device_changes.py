"""Whether devices can stand for something that a pod asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.framework import PodInfo
from kubesched.k8s.model.extended_resources import device_class_of
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import is_extended
from kubesched.k8s.model.resource import DeviceClass
from kubesched.scheduler.plugins.resource_allocation.devices import DEVICE_KINDS


def asks_for_devices(pod: PodInfo, classes: Mapping[str, DeviceClass]) -> bool:
    """Whether a class of devices stands for one of the resources."""
    return any(is_extended(name) and device_class_of(name, classes) is not None for name in pod.resources.wanted)


def devices_do_not_matter(pod: PodInfo, changed: Sequence[KubeObject]) -> bool:
    """Whether a pod without claims is indifferent to what changed. Only extended resources can be devices."""
    if not any(is_extended(name) for name in pod.resources.wanted):
        return True
    return not any(isinstance(item, DEVICE_KINDS) for item in changed)
