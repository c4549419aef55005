"""Deployments: one replica set per template, and the rolling update from old ones to the new one.

The replica set is named after its template's hash, which its pods carry as a label, so that sets do not mix up their
pods. `rollout` says how far each set may be scaled at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kubesched.expansion.actions import Plan
from kubesched.expansion.rollout import ReplicaSetScale, next_sizes
from kubesched.expansion.templates import EMPTY_TEMPLATE, owner_reference, template_hash, without_labels
from kubesched.model.apps import ReplicaSet, ReplicaSetSpec
from kubesched.model.core import Pod, PodTemplateSpec
from kubesched.model.meta import LabelSelector, ObjectMeta
from kubesched.model.workloads import Deployment

TEMPLATE_HASH_LABEL = "pod-template-hash"
REVISION_ANNOTATION = "deployment.kubernetes.io/revision"


def sync_deployment(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet], pods: Mapping[str, Sequence[Pod]]
) -> Plan:
    """`replica_sets` are those of the deployment; `pods` has theirs, by the set's uid."""
    plan = Plan()
    if deployment.spec.paused and replica_sets:
        return plan
    current = find_current(deployment, replica_sets)
    old = [known for known in replica_sets if known is not current]
    sizes = next_sizes(
        deployment,
        None if current is None else ReplicaSetScale.of(current, pods.get(current.metadata.uid, ())),
        [ReplicaSetScale.of(known, pods.get(known.metadata.uid, ())) for known in old],
    )
    if current is None:
        plan.create(_new_set(deployment, sizes.current, replica_sets))
    elif current.spec.replicas != sizes.current:
        plan.update(_scaled(current, sizes.current))
    for known, size in zip(old, sizes.old, strict=True):
        if known.spec.replicas != size:
            plan.update(_scaled(known, size))
    return plan


def find_current(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The set of the deployment's present template; the newest, if several look alike."""
    wanted = deployment.spec.template or EMPTY_TEMPLATE
    alike = [known for known in replica_sets if _is_of_template(known, wanted)]
    return max(alike, key=_revision, default=None)


def _is_of_template(known: ReplicaSet, template: PodTemplateSpec) -> bool:
    own = known.spec.template or EMPTY_TEMPLATE
    drop = (TEMPLATE_HASH_LABEL,)
    return without_labels(own, drop) == without_labels(template, drop)


def _revision(known: ReplicaSet) -> int:
    text = (known.metadata.annotations or {}).get(REVISION_ANNOTATION, "0")
    return int(text) if text.isdecimal() else 0


def _new_set(deployment: Deployment, size: int, others: Sequence[ReplicaSet]) -> ReplicaSet:
    template = deployment.spec.template or EMPTY_TEMPLATE
    own_hash = template_hash(template)
    marked = {TEMPLATE_HASH_LABEL: own_hash}
    labels = {**(template.metadata.labels or {}), **marked}
    selector = deployment.spec.selector or LabelSelector()
    revision = 1 + max(map(_revision, others), default=0)
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{deployment.name}-{own_hash}",
            namespace=deployment.namespace,
            labels=labels,
            annotations={REVISION_ANNOTATION: str(revision)},
            owner_references=(owner_reference(deployment),),
        ),
        spec=ReplicaSetSpec(
            replicas=size,
            selector=replace(selector, match_labels={**(selector.match_labels or {}), **marked}),
            template=replace(template, metadata=replace(template.metadata, labels=labels)),
        ),
    )


def _scaled(known: ReplicaSet, size: int) -> ReplicaSet:
    return replace(known, spec=replace(known.spec, replicas=size))
