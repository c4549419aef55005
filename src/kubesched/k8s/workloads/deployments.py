"""Deployments: one replica set per template, and the rolling update from old ones to the new one.

The replica set is named after its template's hash, which its pods carry as a label, so that sets do not mix up their
pods. `rollout` says how far each set may be scaled at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from msgspec.structs import replace

from kubesched.k8s.model.apps import ReplicaSet, ReplicaSetSpec
from kubesched.k8s.model.core import Pod, PodTemplateSpec
from kubesched.k8s.model.meta import LabelSelector, ObjectMeta
from kubesched.k8s.model.workloads import Deployment, DeploymentStrategy
from kubesched.k8s.workloads.actions import Plan
from kubesched.k8s.workloads.pod_states import available_next_s
from kubesched.k8s.workloads.replicas import n_wanted
from kubesched.k8s.workloads.rollout import (
    DESIRED_REPLICAS,
    MOST_REPLICAS,
    ReplicaSetScale,
    most_replicas,
    next_sizes,
)
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, owner_reference, template_hash, without_labels

TEMPLATE_HASH_LABEL = "pod-template-hash"
REVISION_ANNOTATION = "deployment.kubernetes.io/revision"


def sync_deployment(
    deployment: Deployment,
    replica_sets: Sequence[ReplicaSet],
    pods: Mapping[str, Sequence[Pod]],
    now_s: float = inf,
) -> Plan:
    """`replica_sets` are those of the deployment, the oldest first; `pods` has theirs, by the set's uid."""
    plan = Plan()
    current = find_current(deployment, replica_sets)
    old = [known for known in replica_sets if known is not current]
    sizes = next_sizes(
        deployment,
        None if current is None else ReplicaSetScale.of(current, pods.get(current.metadata.uid, ()), now_s),
        [ReplicaSetScale.of(known, pods.get(known.metadata.uid, ()), now_s) for known in old],
    )
    if current is None:
        if not deployment.spec.paused or not replica_sets:
            plan.create(_new_set(deployment, sizes.current, replica_sets))
    else:
        _scale(plan, deployment, current, sizes.current)
    for known, size in zip(old, sizes.old, strict=True):
        _scale(plan, deployment, known, size)
    for known in replica_sets:
        next_s = available_next_s(pods.get(known.metadata.uid, ()), known.spec.min_ready_seconds, now_s)
        if next_s is not None:
            plan.look_again(next_s)
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
    own_hash = template_hash(template, salt=deployment.status.collision_count or 0)
    marked = {TEMPLATE_HASH_LABEL: own_hash}
    labels = {**(template.metadata.labels or {}), **marked}
    selector = deployment.spec.selector or LabelSelector()
    revision = 1 + max(map(_revision, others), default=0)
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{deployment.name}-{own_hash}",
            namespace=deployment.namespace,
            labels=labels,
            annotations={REVISION_ANNOTATION: str(revision), **size_annotations(deployment)},
            owner_references=(owner_reference(deployment),),
        ),
        spec=ReplicaSetSpec(
            replicas=size,
            selector=replace(selector, match_labels={**(selector.match_labels or {}), **marked}),
            template=replace(template, metadata=replace(template.metadata, labels=labels)),
            min_ready_seconds=deployment.spec.min_ready_seconds,
        ),
    )


def _scale(plan: Plan, deployment: Deployment, known: ReplicaSet, size: int) -> None:
    """A set that has pods notes for how many it was scaled: a change of that number is seen by it."""
    noted = known.metadata.annotations or {}
    wanted = noted | size_annotations(deployment) if size or known.spec.replicas else noted
    if known.spec.replicas != size or wanted != noted:
        metadata = replace(known.metadata, annotations=wanted or None)
        plan.update(replace(known, metadata=metadata, spec=replace(known.spec, replicas=size)))


def size_annotations(deployment: Deployment) -> dict[str, str]:
    wanted = n_wanted(deployment)
    most = most_replicas(deployment.spec.strategy or DeploymentStrategy(), wanted)
    return {DESIRED_REPLICAS: str(wanted), MOST_REPLICAS: str(most)}
