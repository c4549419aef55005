"""Which services and controllers select a pod: what spreading by selectors went by, before pods had constraints."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.framework.handle import Objects
from kubesched.k8s.model.apps import ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, Service
from kubesched.k8s.model.meta import LabelSelector
from kubesched.k8s.model.selectors import Selector, SelectorError, from_label_selector, from_labels


def services_of(pod: Pod, objects: Objects) -> list[Service]:
    """Services that select the pod, by name. One without a selector selects nothing, one with an empty selector
    everything."""
    found = (service for service in objects.services.values() if service.namespace == pod.namespace)
    selecting = [s for s in found if s.spec.selector is not None and from_labels(s.spec.selector).matches(pod.labels)]
    return sorted(selecting, key=lambda service: service.name)


def controller_selectors(pod: Pod, objects: Objects) -> Iterator[Selector]:
    """Of the replication controllers, replica sets and stateful sets that select the pod, whoever owns it."""
    if not pod.labels:
        return
    for controller in objects.replication_controllers.values():
        selector = from_labels(controller.spec.selector)
        if controller.namespace == pod.namespace and selector.requirements and selector.matches(pod.labels):
            yield selector
    owners: list[ReplicaSet | StatefulSet] = [*objects.replica_sets.values(), *objects.stateful_sets.values()]
    for owner in owners:
        if owner.namespace == pod.namespace:
            found = _compiled(owner.spec.selector)
            if found is not None and found.requirements and found.matches(pod.labels):
                yield found


def each_selector(pod: Pod, objects: Objects) -> Iterator[Selector]:
    """Those of the services, and of the controllers, that select the pod."""
    for service in services_of(pod, objects):
        yield from_labels(service.spec.selector)
    yield from controller_selectors(pod, objects)


def joined_selector(pod: Pod, objects: Objects) -> Selector:
    """What all of them ask for at once; everything if there is none."""
    labels: dict[str, str] = {}
    for service in services_of(pod, objects):
        labels |= service.spec.selector or {}
    requirements = list(from_labels(labels).requirements)
    for selector in controller_selectors(pod, objects):
        requirements.extend(selector.requirements)
    return Selector(tuple(dict.fromkeys(requirements)))


def _compiled(selector: LabelSelector | None) -> Selector | None:
    try:
        return from_label_selector(selector)
    except SelectorError:
        return None
