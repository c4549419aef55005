"""What an API server fills in when a pod or a claim is created, as far as scheduling sees it.

Priority and preemption policy from the priority class, requests from limits, tolerations for nodes that are not ready,
host ports of pods on the host's network, label keys merged into selectors; a claim's default storage class. A pod that
an API server would refuse is an `AdmissionError`.

Next: `pod_defaults` and `label_keys` for the single rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.policy import PriorityClass
from kubesched.k8s.model.storage import PersistentVolumeClaim, StorageClass
from kubesched.k8s.model.volume_claims import STORAGE_CLASS_ANNOTATION
from kubesched.k8s.workloads.label_keys import with_label_keys_merged
from kubesched.k8s.workloads.pod_defaults import (
    with_default_requests,
    with_default_tolerations,
    with_host_ports,
    with_pod_level_requests,
)

DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
DEFAULT_GRACE_S = 30

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has."""

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"


class AdmissionError(ValueError):
    """An API server would refuse to create the object."""


def admit_pod(pod: Pod, priority_classes: Mapping[str, PriorityClass]) -> Pod:
    """The pod as an API server stores it. A priority that is written out is kept."""
    pod = _with_priority(pod, priority_classes)
    spec = replace(
        pod.spec,
        restart_policy=pod.spec.restart_policy or "Always",
        termination_grace_period_seconds=_default_grace(pod.spec.termination_grace_period_seconds),
    )
    pod = with_default_requests(replace(pod, spec=spec))
    pod = with_pod_level_requests(pod)
    pod = with_default_tolerations(pod)
    pod = with_host_ports(pod)
    return with_label_keys_merged(pod)


def admit_claim(claim: PersistentVolumeClaim, storage_classes: Iterable[StorageClass]) -> PersistentVolumeClaim:
    """A claim that names no storage class, not even an empty one, gets the default class, if there is one."""
    annotated = STORAGE_CLASS_ANNOTATION in (claim.metadata.annotations or {})
    if annotated or claim.spec.storage_class_name is not None:
        return claim
    defaults = [known for known in storage_classes if _is_default(known)]
    if not defaults:
        return claim
    newest = min(defaults, key=lambda known: (_newest_first(known), known.name))
    return replace(claim, spec=replace(claim.spec, storage_class_name=newest.name))


def _with_priority(pod: Pod, classes: Mapping[str, PriorityClass]) -> Pod:
    spec = pod.spec
    name, value, policy = _priority(spec.priority_class_name, classes)
    if spec.priority is not None:
        value = spec.priority
    return replace(
        pod,
        spec=replace(
            spec,
            priority_class_name=name,
            priority=value,
            preemption_policy=spec.preemption_policy or policy or PREEMPT_LOWER_PRIORITY,
        ),
    )


def _priority(name: str, classes: Mapping[str, PriorityClass]) -> tuple[str, int, str | None]:
    """Name, value and preemption policy of the class that counts."""
    if not name:
        defaults = [known for known in classes.values() if known.global_default]
        if not defaults:
            return "", 0, None
        chosen = min(defaults, key=lambda known: (known.value, known.name))
        return chosen.name, chosen.value, chosen.preemption_policy
    if name in classes:
        return name, classes[name].value, classes[name].preemption_policy
    if name in SYSTEM_CLASSES:
        return name, SYSTEM_CLASSES[name], None
    raise AdmissionError(f"no PriorityClass with name {name} was found")


def _default_grace(seconds: int | None) -> int:
    return DEFAULT_GRACE_S if seconds is None else seconds


def _is_default(storage_class: StorageClass) -> bool:
    return (storage_class.metadata.annotations or {}).get(DEFAULT_CLASS_ANNOTATION) == "true"


def _newest_first(storage_class: StorageClass) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in storage_class.metadata.creation_timestamp or "")
