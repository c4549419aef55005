"""Jobs with a group of their own: the Workload and the PodGroup that the feature gate WorkloadWithJob makes for them.

In v1.36 that is a job which needs all its pods at once: indexed, with as many completions as pods that run side by
side. Its group is a gang of that size. In v1.37 it is every job that belongs to nobody else, and its group is no gang:
`is_next` says which of them is meant. A job that names a group in its template has it from somebody else.

Names and contents are those of kube-controller-manager.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.k8s.model.apps import Job
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import ObjectMeta, OwnerReference, controller_of
from kubesched.k8s.model.scheduling import (
    BasicSchedulingPolicy,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupTemplate,
    PodGroupTemplateReference,
    TypedLocalReference,
    Workload,
    WorkloadPodGroupTemplateReference,
    WorkloadReference,
    WorkloadSpec,
)
from kubesched.k8s.workloads.names import safe_hash
from kubesched.k8s.workloads.templates import owner_reference

_JOB_GROUP = "batch"
_LONGEST_NAME = 253


def needs_group(job: Job, is_next: bool = False) -> bool:
    spec = job.spec
    if spec.template is not None and spec.template.spec.scheduling_group is not None:
        return False
    if is_next:
        return controller_of(job.metadata) is None
    size = spec.parallelism or 0
    return spec.completion_mode == "Indexed" and size > 1 and spec.completions == size


def is_new(job: Job, pods: Sequence[Pod]) -> bool:
    """It never started: the pods of one that did may stand outside of any group."""
    status = job.status
    was_suspended = any(one.type == "Suspended" for one in status.conditions or ())
    return not (pods or status.start_time or status.succeeded or status.failed or was_suspended)


def workload_for(job: Job, is_next: bool = False) -> Workload:
    suffix = safe_hash(f"(types.UID){job.metadata.uid}".encode())
    name = f"{job.name[: _LONGEST_NAME - len(suffix) - 1]}-{suffix}"
    if is_next:
        class_name = job.spec.template.spec.priority_class_name if job.spec.template is not None else ""
        policy = PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())
    else:
        class_name = ""
        policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=job.spec.parallelism or 0))
    return Workload(
        metadata=ObjectMeta(name=name, namespace=job.namespace, owner_references=(owner_reference(job),)),
        spec=WorkloadSpec(
            controller_ref=TypedLocalReference(_JOB_GROUP, "Job", job.name),
            pod_group_templates=(PodGroupTemplate(f"{job.name}-pgt-0", policy, priority_class_name=class_name),),
        ),
    )


def is_workload_of(workload: Workload, job: Job) -> bool:
    return workload.spec.controller_ref == TypedLocalReference(_JOB_GROUP, "Job", job.name)


def pod_group_for(job: Job, workload: Workload, api_version: str, is_next: bool = False) -> PodGroup:
    """From the workload's only template, as that is now."""
    (template,) = workload.spec.pod_group_templates or ()
    also = OwnerReference("Workload", workload.name, workload.metadata.uid, api_version)
    owners = (owner_reference(job), also)
    name = _group_name(workload.name, template.name)
    metadata = ObjectMeta(name=name, namespace=job.namespace, owner_references=owners)
    if is_next:
        spec = PodGroupSpec(
            scheduling_policy=template.scheduling_policy,
            scheduling_constraints=template.scheduling_constraints,
            resource_claims=template.resource_claims,
            disruption_mode=template.disruption_mode,
            priority_class_name=template.priority_class_name,
            workload_ref=WorkloadReference(workload.name, template.name),
        )
        return PodGroup(metadata=metadata, spec=spec)
    reference = WorkloadPodGroupTemplateReference(workload.name, template.name)
    spec = PodGroupSpec(
        scheduling_policy=template.scheduling_policy, pod_group_template_ref=PodGroupTemplateReference(reference)
    )
    return PodGroup(metadata=metadata, spec=spec)


def is_group_of(group: PodGroup, workload: Workload) -> bool:
    older = group.spec.pod_group_template_ref
    reference = group.spec.workload_ref or (older.workload if older is not None else None)
    return reference is not None and reference.workload_name == workload.name


def _group_name(workload: str, template: str) -> str:
    """Where both together are too long, the one that takes more than half is cut."""
    suffix = safe_hash((workload + template).encode())
    room = _LONGEST_NAME - len(suffix) - 2
    if len(workload) + len(template) > room:
        of_template = min(len(template), max(room // 2, room - len(workload)))
        workload, template = workload[: room - of_template], template[:of_template]
    return f"{workload}-{template}-{suffix}"
