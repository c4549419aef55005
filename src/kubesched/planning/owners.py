"""Who makes the pods of a cluster at rest: the workload that each belongs to, and how many it wants."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model.apps import StatefulSet
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, OwnerReference, controller_of
from kubesched.k8s.workloads.replicas import scale_behind


class PodOwners:
    def __init__(self, workloads: Iterable[KubeObject]) -> None:
        self._by_uid = {item.metadata.uid: item for item in workloads}
        self._names: dict[str, str] = {}

    def workload_of(self, pod: Pod) -> str:
        """The kind and name of the topmost owner, as far as owners are known: `Deployment web`; `Pod x` for a pod of
        nobody."""
        owner = controller_of(pod.metadata)
        if owner is None:
            return f"Pod {pod.name}"
        name = self._names.get(owner.uid)
        if name is None or not owner.uid:
            name = self._names[owner.uid] = self._topmost(owner)
        return name

    def scale_of(self, reference: OwnerReference) -> tuple[str, int] | None:
        """As disruption budgets ask."""
        return scale_behind(reference, self._by_uid.get)

    def ordered_set_of(self, pod: Pod) -> str | None:
        """The uid of the StatefulSet that makes the pod when the one before it runs; None if nothing waits so."""
        owner = controller_of(pod.metadata)
        known = None if owner is None else self._by_uid.get(owner.uid)
        is_ordered = isinstance(known, StatefulSet) and known.spec.pod_management_policy != "Parallel"
        return known.metadata.uid if known is not None and is_ordered else None

    def _topmost(self, owner: OwnerReference) -> str:
        for _ in range(len(self._by_uid) + 1):
            known = self._by_uid.get(owner.uid)
            above = None if known is None else controller_of(known.metadata)
            if above is None:
                break
            owner = above
        return f"{owner.kind} {owner.name}"
