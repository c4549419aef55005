"""Claims that are made for a pod: for its ephemeral volumes, and from resource claim templates.

They belong to the pod and go with it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from msgspec.structs import replace

from kubesched.k8s.model.core import Pod, PodResourceClaimStatus
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimTemplate
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.actions import Plan
from kubesched.k8s.workloads.names import NameSource
from kubesched.k8s.workloads.templates import owner_reference

POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"


def sync_pod_claims(
    pod: Pod, claim_keys: Container[str], templates: Mapping[str, ResourceClaimTemplate], names: NameSource
) -> Plan:
    """`claim_keys` are the volume claims that exist, `templates` the resource claim templates by key."""
    plan = Plan()
    if pod.is_terminal or pod.is_terminating:
        return plan
    _make_volume_claims(plan, pod, claim_keys)
    _make_resource_claims(plan, pod, templates, names)
    return plan


def needs_claims(pod: Pod) -> bool:
    """Says no quickly for most pods."""
    return bool(pod.spec.resource_claims) or any(volume.ephemeral is not None for volume in pod.spec.volumes or ())


def _make_volume_claims(plan: Plan, pod: Pod, claim_keys: Container[str]) -> None:
    for volume in pod.spec.volumes or ():
        if volume.ephemeral is None or volume.ephemeral.volume_claim_template is None:
            continue
        template = volume.ephemeral.volume_claim_template
        metadata = ObjectMeta(
            name=f"{pod.name}-{volume.name}",
            namespace=pod.namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=(owner_reference(pod),),
        )
        claim = PersistentVolumeClaim(metadata=metadata, spec=template.spec)
        if claim.key not in claim_keys:
            plan.create(claim)


def _make_resource_claims(
    plan: Plan, pod: Pod, templates: Mapping[str, ResourceClaimTemplate], names: NameSource
) -> None:
    known = {status.name for status in pod.status.resource_claim_statuses or ()}
    made: list[PodResourceClaimStatus] = []
    for entry in pod.spec.resource_claims or ():
        template = templates.get(f"{pod.namespace}/{entry.resource_claim_template_name or ''}")
        if entry.name in known or template is None:
            continue
        metadata = ObjectMeta(
            name=names.name(f"{pod.name}-{entry.name}-"),
            namespace=pod.namespace,
            labels=template.spec.metadata.labels,
            annotations={**(template.spec.metadata.annotations or {}), POD_CLAIM_ANNOTATION: entry.name},
            owner_references=(owner_reference(pod),),
        )
        plan.create(ResourceClaim(metadata=metadata, spec=template.spec.spec))
        made.append(PodResourceClaimStatus(entry.name, metadata.name))
    if made:
        statuses = (*(pod.status.resource_claim_statuses or ()), *made)
        plan.update(replace(pod, status=replace(pod.status, resource_claim_statuses=statuses)))
