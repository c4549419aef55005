"""Which pods a pod without constraints of its own is spread among: those that its services and its controller select.

Services and controllers that select a pod agree with its labels, so that their selectors can simply be joined.
"""

from __future__ import annotations

from kubesched.framework.handle import Objects
from kubesched.k8s.model.apps import ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, ReplicationController, Service
from kubesched.k8s.model.meta import LabelSelector, controller_of
from kubesched.k8s.model.selectors import Labels, Selector, SelectorError, from_label_selector, from_labels

SELECTING_KINDS = (Service, ReplicationController, ReplicaSet, StatefulSet)
"""The objects that are asked."""


def default_selector(pod: Pod, objects: Objects) -> Selector:
    """Selects everything when neither a service nor a known controller selects the pod."""
    labels = _service_labels(pod, objects)
    owner = controller_of(pod.metadata)
    if owner is None:
        return from_labels(labels)
    key = f"{pod.namespace}/{owner.name}"
    match (owner.api_version, owner.kind):
        case ("v1", "ReplicationController"):
            controller = objects.replication_controllers.get(key)
            return from_labels(labels | (controller.spec.selector or {}) if controller else labels)
        case ("apps/v1", "ReplicaSet"):
            replica_set = objects.replica_sets.get(key)
            return _narrowed(labels, replica_set.spec.selector if replica_set else None)
        case ("apps/v1", "StatefulSet"):
            stateful_set = objects.stateful_sets.get(key)
            return _narrowed(labels, stateful_set.spec.selector if stateful_set else None)
        case _:
            return from_labels(labels)


def _service_labels(pod: Pod, objects: Objects) -> dict[str, str]:
    """The joined selectors of the services that select the pod."""
    joined: dict[str, str] = {}
    pod_labels = pod.labels
    for service in objects.services.values():
        if service.metadata.namespace == pod.metadata.namespace:
            selector = service.spec.selector
            if selector and selector.items() <= pod_labels.items():
                joined |= selector
    return joined


def _narrowed(labels: Labels, selector: LabelSelector | None) -> Selector:
    """A controller's selector that is missing or cannot be understood adds nothing."""
    requirements = from_labels(labels).requirements
    try:
        return Selector(requirements + from_label_selector(selector).requirements)
    except SelectorError:
        return Selector(requirements)
