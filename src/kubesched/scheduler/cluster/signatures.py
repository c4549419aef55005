"""Finds pods with the same signature, so that what follows from a pod is worked out once.

Two pods have one signature if they agree in namespace, labels, controller, spec (but for the node that they are on or
pinned to, and volumes that nobody looks at) and in those parts of their status that change what they request. The key
of a signature is the encoding of just these, so a field that the model learns to decode tells signatures apart without
anybody remembering to list it here.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.k8s.model.core import NodeSelector, Pod, PodCondition, PodSpec, PodStatus
from kubesched.k8s.model.meta import PodKey, controller_of
from kubesched.k8s.model.selectors import NODE_NAME_FIELD
from kubesched.k8s.model.volumes import Volume
from kubesched.scheduler.cluster.label_classes import LabelClasses

_encode = msgspec.json.Encoder().encode


class PodSignatures:
    """Signatures by their keys, and the numbers of their affinity classes."""

    def __init__(self, label_classes: LabelClasses) -> None:
        self._label_classes = label_classes
        self._signatures: WeakValueDictionary[bytes, PodSignature] = WeakValueDictionary()
        self._affinity_classes: dict[bytes, int] = {}

    def info_like(self, pod: Pod, known: PodInfo | None, key: PodKey) -> PodInfo:
        """As `info`, for a newer state of a known pod: its signature is mostly the same, which is cheap to see."""
        if known is not None and _has_same_signature(known.pod, pod):
            return PodInfo(pod, known.signature, key, known.pin)
        return self.info(pod, key)

    def info(self, pod: Pod, key: PodKey | None = None) -> PodInfo:
        spec, pin = _without_pin(pod.spec)
        encoded = _signature_key(pod, spec)
        signature = self._signatures.get(encoded)
        if signature is None:
            signature = PodSignature(
                replace(pod, spec=spec) if pin else pod,
                self._label_classes.intern(pod.metadata.namespace, pod.metadata.labels),
                self._affinity_class(pod),
            )
            self._signatures[encoded] = signature
        return PodInfo(pod, signature, key, pin)

    def _affinity_class(self, pod: Pod) -> int:
        affinity = pod.spec.affinity
        if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
            return -1
        key = _encode((pod.metadata.namespace, affinity.pod_affinity, affinity.pod_anti_affinity))
        return self._affinity_classes.setdefault(key, len(self._affinity_classes))


def _has_same_signature(old: Pod, new: Pod) -> bool:
    """Whether everything that `_signature_key` looks at, and the node, is the same."""
    old_status, new_status = old.status, new.status
    return (
        old.metadata.labels == new.metadata.labels
        and old.metadata.owner_references == new.metadata.owner_references
        and old.spec == new.spec
        and old_status.container_statuses == new_status.container_statuses
        and old_status.init_container_statuses == new_status.init_container_statuses
        and old_status.resources == new_status.resources
        and old_status.allocated_resources == new_status.allocated_resources
        and _resize_conditions(old_status) == _resize_conditions(new_status)
    )


def _resize_conditions(status: PodStatus) -> tuple[PodCondition, ...] | None:
    """Conditions change what a pod requests only while a resize is pending; those of a binding do not."""
    conditions = status.conditions
    if not conditions or not any(condition.type == "PodResizePending" for condition in conditions):
        return None
    return conditions


def _without_pin(spec: PodSpec) -> tuple[PodSpec, str]:
    """The spec without the field that names the only node the pod can go to, as a daemon's pod has it; and the name."""
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return spec, ""
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is None or len(required.node_selector_terms) != 1:
        return spec, ""
    (term,) = required.node_selector_terms
    fields = term.match_fields
    if not fields or len(fields) != 1 or fields[0].key != NODE_NAME_FIELD or fields[0].operator != "In":
        return spec, ""
    names = fields[0].values or ()
    if len(names) != 1 or not names[0]:
        return spec, ""
    rest = NodeSelector((replace(term, match_fields=None),)) if term.match_expressions else None
    node_affinity = replace(affinity.node_affinity, required_during_scheduling_ignored_during_execution=rest)
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity)), names[0]


def _signature_key(pod: Pod, spec: PodSpec) -> bytes:
    metadata, status = pod.metadata, pod.status
    if spec.node_name:
        spec = replace(spec, node_name="")
    if spec.volumes:
        # Those that nobody looks at differ in name from pod to pod: every pod has one with its account's token.
        known = tuple(volume for volume in spec.volumes if volume != Volume(name=volume.name))
        spec = replace(spec, volumes=known or None)
    return _encode(
        (
            metadata.namespace,
            metadata.labels,
            controller_of(metadata) if metadata.owner_references else None,
            spec,
            status.container_statuses,
            status.init_container_statuses,
            status.resources,
            status.allocated_resources,
            _resize_conditions(status),
        )
    )
