"""Pod signatures and label classes: what follows from a pod's spec or labels is worked out once for many pods.

Two pods have one signature if they agree in namespace, labels, controller, spec (but for the node that they are on or
pinned to, and volumes that no plugin reads) and in those parts of their status that change what they request. The key
of a signature is the encoding of just these, so a field that is added to the model tells signatures apart without being
listed here. Signatures that differ in the names of claims alone have one in common, without these.

A label class is a (namespace, labels) that occurs among pods. A selector is evaluated once per class, not once per pod;
and an index by label value keeps even that small when every pod has labels of its own (StatefulSets, Jobs).
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakValueDictionary

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.core import NodeSelector, Pod, PodCondition, PodSpec, PodStatus, SchedulingGroup
from kubesched.k8s.model.meta import PodKey, controller_of
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, Selector
from kubesched.k8s.model.volumes import Volume

_encode = msgspec.json.Encoder().encode

_SOME_GROUP = SchedulingGroup("")
"""Stands for any."""

_Question = tuple[Selector, frozenset[str] | None]


class LabelClasses:
    """Numbers for (namespace, labels). Answers to selectors are kept, and extended as new classes appear."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._namespaces: list[str] = []
        self._labels: list[dict[str, str]] = []
        self._by_pair: dict[tuple[str, str], list[int]] = {}
        self._answers: dict[_Question, BoolArray] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def intern(self, namespace: str, labels: dict[str, str] | None) -> int:
        key = _encode((namespace, labels))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._labels)
            self._namespaces.append(namespace)
            self._labels.append(labels or {})
            for pair in (labels or {}).items():
                self._by_pair.setdefault(pair, []).append(number)
        return number

    def picked_by(self, selector: Selector, namespaces: frozenset[str] | None) -> BoolArray:
        """(n_classes,) which classes the selector picks in these namespaces (None: in all)."""
        question = (selector, namespaces)
        known = self._answers.get(question)
        n = len(self._labels)
        if known is not None and len(known) == n:
            return known
        answer = np.zeros(n, dtype=np.bool_)
        start = 0
        if known is not None:
            start = len(known)
            answer[:start] = known
        for number in self._candidates(selector, start):
            if namespaces is None or self._namespaces[number] in namespaces:
                answer[number] = selector.matches(self._labels[number])
        self._answers[question] = answer
        return answer

    def _candidates(self, selector: Selector, start: int) -> Iterable[int]:
        """Classes from `start` on that may match: those with a value the most selective requirement asks for."""
        if selector.nothing:
            return ()
        best: list[int] | None = None
        for requirement in selector.requirements:
            if requirement.operator == "In":
                found = [n for value in requirement.values for n in self._by_pair.get((requirement.key, value), ())]
                if best is None or len(found) < len(best):
                    best = found
        if best is None:
            return range(start, len(self._labels))
        return (number for number in best if number >= start)


class PodSignatures:
    """Signatures by their keys, and the numbers of their affinity classes."""

    def __init__(self, label_classes: LabelClasses) -> None:
        self._label_classes = label_classes
        self._signatures: WeakValueDictionary[bytes, PodSignature] = WeakValueDictionary()
        self._affinity_classes: dict[bytes, int] = {}
        self.ignores_groups = False
        """Whether pods of different pod groups can have one signature: if no plugin looks at which group it is."""

    def info_like(self, pod: Pod, known: PodInfo | None, key: PodKey) -> PodInfo:
        """As `info`, for a newer state of a known pod: its signature is mostly the same, which is cheap to see."""
        if known is not None and _has_same_signature(known.pod, pod):
            return PodInfo(pod, known.signature, key, known.pin)
        return self.info(pod, key)

    def info(self, pod: Pod, key: PodKey | None = None) -> PodInfo:
        spec, pin = _without_pin(pod.spec)
        unnamed, claims = _without_claim_names(spec)
        if self.ignores_groups and spec.scheduling_group is not None and not spec.resource_claims:
            unnamed = replace(unnamed, scheduling_group=_SOME_GROUP)
        encoded = _signature_key(pod, unnamed)
        signature = self._signatures.get(encoded)
        if signature is None:
            signature = self._signatures[encoded] = PodSignature(
                replace(pod, spec=spec) if pin else pod,
                self._label_classes.intern(pod.metadata.namespace, pod.metadata.labels),
                self._affinity_class(pod),
            )
        if claims:
            signature = self._with_claims(signature, encoded + _encode(claims), replace(pod, spec=spec) if pin else pod)
        return PodInfo(pod, signature, key, pin)

    def _with_claims(self, unnamed: PodSignature, encoded: bytes, pod: Pod) -> PodSignature:
        signature = self._signatures.get(encoded)
        if signature is None:
            signature = PodSignature(pod, unnamed.label_class, unnamed.affinity_class, unnamed)
            self._signatures[encoded] = signature
        return signature

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
        (old.metadata.labels is new.metadata.labels or old.metadata.labels == new.metadata.labels)
        and old.metadata.owner_references == new.metadata.owner_references
        and (old.spec is new.spec or old.spec == new.spec)
        and old_status.container_statuses == new_status.container_statuses
        and old_status.init_container_statuses == new_status.init_container_statuses
        and old_status.resources == new_status.resources
        and old_status.allocated_resources == new_status.allocated_resources
        and (
            old_status.conditions is new_status.conditions
            or _resize_conditions(old_status) == _resize_conditions(new_status)
        )
    )


def _resize_conditions(status: PodStatus) -> tuple[PodCondition, ...] | None:
    """Conditions change what a pod requests only while a resize is pending; those of a binding do not."""
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return status.conditions
    return None


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


def _without_claim_names(spec: PodSpec) -> tuple[PodSpec, list[str]]:
    """The spec without the names of the claims (for volumes and devices) that it names, and these in their order."""
    if not spec.volumes and not spec.resource_claims:
        return spec, []
    volumes, resource_claims = spec.volumes or (), spec.resource_claims or ()
    claims = [v.persistent_volume_claim.claim_name for v in volumes if v.persistent_volume_claim is not None]
    if claims:
        volumes = tuple(map(_without_claim_name, volumes))
    named = [entry.resource_claim_name for entry in resource_claims if entry.resource_claim_name is not None]
    if named:
        resource_claims = tuple(
            entry if entry.resource_claim_name is None else replace(entry, resource_claim_name="")
            for entry in resource_claims
        )
        claims += named
    if not claims:
        return spec, claims
    return replace(spec, volumes=volumes or None, resource_claims=resource_claims or None), claims


def _without_claim_name(volume: Volume) -> Volume:
    claim = volume.persistent_volume_claim
    return volume if claim is None else replace(volume, persistent_volume_claim=replace(claim, claim_name=""))


def _signature_key(pod: Pod, spec: PodSpec) -> bytes:
    metadata, status = pod.metadata, pod.status
    if spec.node_name:
        spec = replace(spec, node_name="")
    if spec.volumes:
        # Those that no plugin looks at differ in name from pod to pod: every pod has one with its account's token.
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
            _resize_conditions(status) if status.conditions else None,
        )
    )
