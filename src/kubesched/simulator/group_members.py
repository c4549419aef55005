"""Why members of a gang do not exist: what an API server says to the pods that its workload would still make."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kubesched.explanation.cause import Cause
from kubesched.explanation.layout import all_of
from kubesched.explanation.pod_groups import UnmadeMembers
from kubesched.k8s.model.apps import Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, ReplicationController, SchedulingGroup
from kubesched.k8s.model.manifests import ManifestError, Manifests
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.quantity import parse
from kubesched.k8s.model.scheduling import PodGroup, group_key_of
from kubesched.simulator.expansion import Workload, quotas_without_room, why_unmade, with_one_pod

_MAKERS = (Job, StatefulSet, Deployment, ReplicaSet, ReplicationController)


def unmade_members(found: Manifests, key: str) -> UnmadeMembers | None:
    """Of a gang that has fewer pods than it needs. None if nothing is known to keep its workload from making them."""
    group = next((item for item in found.objects if isinstance(item, PodGroup) and item.key == key), None)
    if group is None:
        return None
    n_there = sum(isinstance(item, Pod) and group_key_of(item) == key for item in found.objects)
    n_missing = group.min_count - n_there
    if n_missing <= 0:
        return None
    for owner in _workloads_of(found, group):
        kind = type(owner).__name__
        try:
            cause = why_unmade(found, kind, owner.key, n_missing)
            made = with_one_pod(found, kind, owner.key) if cause is not None else None
        except ManifestError:  # an API server refuses its pods for what is wrong with them
            made = None
        if cause is None:
            continue
        told = dataclasses.replace(cause, text=f"{kind} {owner.name} cannot create them: {cause.text}")
        if made is None:
            return UnmadeMembers(told)
        pod = made[1]
        member = replace(pod, spec=replace(pod.spec, scheduling_group=SchedulingGroup(pod_group_name=group.name)))
        steps = [_allowing(one, n_missing) for one in quotas_without_room(found, pod, n_missing)]
        if isinstance(owner, Job) and owner.spec.suspend:
            steps.insert(0, f"resume Job {owner.name} (spec.suspend: false)")
        return UnmadeMembers(told, member, all_of(steps))
    return None


def _workloads_of(found: Manifests, group: PodGroup) -> Iterator[Workload]:
    """Those whose template names the group, and the Job that it was made for."""
    maker = controller_of(group.metadata)
    for item in found.objects:
        if not isinstance(item, _MAKERS) or item.namespace != group.namespace:
            continue
        named = None if item.spec.template is None else item.spec.template.spec.scheduling_group
        is_maker = maker is not None and (maker.kind, maker.name) == (type(item).__name__, item.name)
        if is_maker or (named is not None and named.pod_group_name == group.name):
            yield item


def _allowing(cause: Cause, n_more: int) -> str:
    """What to do so that a quota lets so many more pods in."""
    quota = f"ResourceQuota {cause.fields['quota'].partition('/')[2]}"
    exceeded = cause.fields.get("exceeded")
    if exceeded is None:
        return f"let the pod template meet {quota}: its pods {cause.fields['unsaid']}"
    told = [f"{one['resource']} from {one['hard']} to {_needed(one, n_more)}" for one in exceeded]
    return f"raise {all_of(told)} in {quota}"


def _needed(exceeded: Mapping[str, str], n_more: int) -> str:
    total = parse(exceeded["used"])
    for _ in range(n_more):
        total += parse(exceeded["requested"])
    return str(total)
