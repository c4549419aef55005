"""Stateful sets: pods with a number each, their claims, one after another or all at once.

In order (`OrderedReady`), the next pod comes when all before it are available, and the last goes first, one at a time.
A pod that has ended is replaced under the same name. Claims outlive their pods, unless the set's retention policy says
otherwise: then they belong to the set, or to the pod that goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from msgspec.structs import replace

from kubesched.k8s.model.apps import StatefulSet, StatefulSetClaimRetention, StatefulSetUpdateStrategy
from kubesched.k8s.model.core import Pod, PodSpec, PodTemplateSpec
from kubesched.k8s.model.meta import ObjectMeta, OwnerReference
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.model.volumes import PersistentVolumeClaimVolumeSource, Volume
from kubesched.k8s.workloads.actions import UNPACED, Bursts, Plan
from kubesched.k8s.workloads.pod_states import available_next_s, is_available
from kubesched.k8s.workloads.replicas import n_wanted
from kubesched.k8s.workloads.templates import (
    EMPTY_TEMPLATE,
    REVISION_HASH_LABEL,
    Revisions,
    owner_reference,
    pod_from_template,
)

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
PARALLEL = "Parallel"
DELETE = "Delete"


def sync_stateful_set(
    owner: StatefulSet,
    pods: Sequence[Pod],
    claims: Mapping[str, PersistentVolumeClaim],
    revisions: Revisions,
    bursts: Bursts = UNPACED,
    now_s: float = inf,
    older: OlderTemplate | None = None,
) -> Plan:
    """`pods` are those of the set; `claims` are all that exist, by key; `older` is what pods below the partition are
    made from in the middle of an update."""
    plan = Plan()
    _hand_over_claims(plan, owner, pods, claims)
    min_ready_s = owner.spec.min_ready_seconds
    next_s = available_next_s(pods, min_ready_s, now_s)
    if next_s is not None:
        plan.look_again(next_s)
    by_ordinal = {ordinal: pod for pod in pods if (ordinal := _ordinal(owner, pod)) is not None}
    wanted = _ordinals(owner)
    in_order = owner.spec.pod_management_policy != PARALLEL
    n_missing = len(wanted) - sum(1 for ordinal in by_ordinal if ordinal in wanted)
    n_allowed = bursts.cut(plan, min(n_missing, 1) if in_order else n_missing, pods)
    for ordinal in wanted:
        pod = by_ordinal.get(ordinal)
        if pod is None:
            if n_allowed == 0:
                return plan
            n_allowed -= 1
            _create(plan, owner, ordinal, claims, revisions, older)
        elif pod.is_terminal and not pod.is_terminating:
            plan.delete(pod)
        if in_order and (pod is None or not is_available(pod, min_ready_s, now_s)):
            return plan
    surplus = [by_ordinal[ordinal] for ordinal in sorted(by_ordinal, reverse=True) if ordinal not in wanted]
    for pod in surplus:
        if not pod.is_terminating:
            plan.delete(pod)
        if in_order:
            return plan
    if not surplus and all(ordinal in by_ordinal for ordinal in wanted):
        _roll(plan, owner, [by_ordinal[ordinal] for ordinal in reversed(wanted)], revisions, now_s)
    return plan


@dataclass(frozen=True, slots=True)
class OlderTemplate:
    """The template that the set had before, and the hash of it."""

    template: PodTemplateSpec
    revision: str


def partition_of(owner: StatefulSet) -> int:
    strategy = owner.spec.update_strategy or StatefulSetUpdateStrategy()
    return 0 if strategy.rolling_update is None else strategy.rolling_update.partition


def _roll(plan: Plan, owner: StatefulSet, last_first: Sequence[Pod], revisions: Revisions, now_s: float) -> None:
    """Replaces pods of an older template, the last first, each when those after it are ready."""
    strategy = owner.spec.update_strategy or StatefulSetUpdateStrategy()
    if strategy.type != "RollingUpdate":
        return
    first = _ordinals(owner).start + partition_of(owner)
    for pod in last_first:
        if (_ordinal(owner, pod) or 0) < first:
            return
        if pod.is_terminating:
            return
        if not revisions.is_current(owner, owner.spec.template, pod):
            plan.delete(pod)
            return
        if not is_available(pod, owner.spec.min_ready_seconds, now_s):
            return


def _create(
    plan: Plan,
    owner: StatefulSet,
    ordinal: int,
    claims: Mapping[str, PersistentVolumeClaim],
    revisions: Revisions,
    older: OlderTemplate | None,
) -> None:
    for claim in _claims(owner, ordinal):
        if claim.key not in claims:
            plan.create(claim)
    name = f"{owner.name}-{ordinal}"
    template = owner.spec.template or EMPTY_TEMPLATE
    revision = revisions.current(owner, owner.spec.template)
    if older is not None and ordinal < _ordinals(owner).start + partition_of(owner):
        template, revision = older.template, older.revision
    labels = {
        POD_NAME_LABEL: name,
        POD_INDEX_LABEL: str(ordinal),
        REVISION_HASH_LABEL: f"{owner.name}-{revision}",
    }
    plan.create(
        pod_from_template(template, owner, name, labels=labels, spec=_with_claims(owner, template.spec, ordinal))
    )


def _claims(owner: StatefulSet, ordinal: int) -> Iterator[PersistentVolumeClaim]:
    selected = {} if owner.spec.selector is None else owner.spec.selector.match_labels or {}
    for template in owner.spec.volume_claim_templates or ():
        metadata = ObjectMeta(
            name=_claim_name(owner, template.metadata.name, ordinal),
            namespace=owner.namespace,
            labels={**(template.metadata.labels or {}), **selected} or None,
            annotations=template.metadata.annotations,
            owner_references=(owner_reference(owner),) if _retention(owner).when_deleted == DELETE else None,
        )
        yield PersistentVolumeClaim(metadata=metadata, spec=template.spec)


def _hand_over_claims(
    plan: Plan, owner: StatefulSet, pods: Sequence[Pod], claims: Mapping[str, PersistentVolumeClaim]
) -> None:
    """Claims that are to go belong to who goes first: to the set, or to a pod that is too much."""
    policy = _retention(owner)
    wanted = _ordinals(owner)
    for pod in pods if owner.spec.volume_claim_templates else ():
        ordinal = _ordinal(owner, pod)
        if ordinal is None:
            continue
        owners = [owner_reference(owner)] if policy.when_deleted == DELETE else []
        if ordinal not in wanted and policy.when_scaled == DELETE:
            owners = [owner_reference(pod)]
        for named in _claims(owner, ordinal):
            known = claims.get(named.key)
            if known is None or known.metadata.deletion_timestamp is not None:
                continue
            before = known.metadata.owner_references or ()
            ours = {owner.metadata.uid, pod.metadata.uid}
            kept = [one for one in before if one.uid not in ours and not _is_of_pod(one, pod)]
            added = [] if any(one.controller for one in kept) else owners  # another one's claim is left to it
            if {(one.uid, one.controller) for one in (*kept, *added)} != {(one.uid, one.controller) for one in before}:
                metadata = replace(known.metadata, owner_references=(*kept, *added) or None)
                plan.update(replace(known, metadata=metadata))


def _is_of_pod(reference: OwnerReference, pod: Pod) -> bool:
    """Of this pod or of a predecessor of the same name."""
    return reference.kind == "Pod" and reference.name == pod.name


def _retention(owner: StatefulSet) -> StatefulSetClaimRetention:
    return owner.spec.persistent_volume_claim_retention_policy or StatefulSetClaimRetention()


def _with_claims(owner: StatefulSet, spec: PodSpec, ordinal: int) -> PodSpec:
    templates = owner.spec.volume_claim_templates or ()
    if not templates:
        return spec
    names = [template.metadata.name for template in templates]
    claimed = [
        Volume(name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(_claim_name(owner, name, ordinal)))
        for name in names
    ]
    others = [volume for volume in spec.volumes or () if volume.name not in names]
    return replace(spec, volumes=(*claimed, *others))


def _claim_name(owner: StatefulSet, template_name: str, ordinal: int) -> str:
    return f"{template_name}-{owner.name}-{ordinal}"


def _ordinals(owner: StatefulSet) -> range:
    start = 0 if owner.spec.ordinals is None else owner.spec.ordinals.start
    return range(start, start + n_wanted(owner))


def _ordinal(owner: StatefulSet, pod: Pod) -> int | None:
    text = pod.name.removeprefix(f"{owner.name}-")
    return int(text) if text.isdecimal() else None
