"""Stateful sets: pods with a number each, their claims, one after another or all at once.

In order (`OrderedReady`), the next pod comes when all before it are ready, and the last goes first, one at a time. A
pod that has ended is replaced under the same name. Claims outlive their pods.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from msgspec.structs import replace

from kubesched.expansion.actions import Plan
from kubesched.expansion.bursts import UNPACED, Bursts
from kubesched.expansion.pod_states import is_healthy
from kubesched.expansion.replicas import n_wanted
from kubesched.expansion.revisions import REVISION_HASH_LABEL, Revisions
from kubesched.expansion.templates import EMPTY_TEMPLATE, pod_from_template
from kubesched.model.apps import StatefulSet, StatefulSetUpdateStrategy
from kubesched.model.core import Pod, PodSpec
from kubesched.model.meta import ObjectMeta
from kubesched.model.storage import PersistentVolumeClaim
from kubesched.model.volumes import PersistentVolumeClaimVolumeSource, Volume

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
PARALLEL = "Parallel"


def sync_stateful_set(
    owner: StatefulSet,
    pods: Sequence[Pod],
    claim_keys: Container[str],
    revisions: Revisions,
    bursts: Bursts = UNPACED,
) -> Plan:
    """`pods` are those of the set; `claim_keys` are the claims that exist."""
    plan = Plan()
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
            _create(plan, owner, ordinal, claim_keys, revisions)
        elif pod.is_terminal and not pod.is_terminating:
            plan.delete(pod)
        if in_order and (pod is None or not is_healthy(pod)):
            return plan
    surplus = [by_ordinal[ordinal] for ordinal in sorted(by_ordinal, reverse=True) if ordinal not in wanted]
    for pod in surplus:
        if not pod.is_terminating:
            plan.delete(pod)
        if in_order:
            return plan
    if not plan.actions and not surplus:
        _roll(plan, owner, [by_ordinal[ordinal] for ordinal in reversed(wanted)], revisions)
    return plan


def _roll(plan: Plan, owner: StatefulSet, last_first: Sequence[Pod], revisions: Revisions) -> None:
    """Replaces pods of an older template, the last first, each when those after it are ready."""
    strategy = owner.spec.update_strategy or StatefulSetUpdateStrategy()
    if strategy.type != "RollingUpdate":
        return
    partition = 0 if strategy.rolling_update is None else strategy.rolling_update.partition
    for pod in last_first:
        if (_ordinal(owner, pod) or 0) < partition:
            return
        if pod.is_terminating:
            return
        if not revisions.is_current(owner, owner.spec.template, pod):
            plan.delete(pod)
            return
        if not is_healthy(pod):
            return


def _create(plan: Plan, owner: StatefulSet, ordinal: int, claim_keys: Container[str], revisions: Revisions) -> None:
    for claim in _claims(owner, ordinal):
        if claim.key not in claim_keys:
            plan.create(claim)
    name = f"{owner.name}-{ordinal}"
    template = owner.spec.template or EMPTY_TEMPLATE
    revision = revisions.current(owner, owner.spec.template)
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
        )
        yield PersistentVolumeClaim(metadata=metadata, spec=template.spec)


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
