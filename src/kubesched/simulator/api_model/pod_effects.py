"""What bindings, evictions and patches do to pods."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from kubesched.framework.effects import BindPod, Done, EvictPod, Failed, FindOut, PatchPodStatus
from kubesched.k8s.model.core import Pod, PodCondition, PodExtendedResourceClaimStatus, PodStatus
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.workloads.pod_states import merge_condition
from kubesched.scheduler.plugins.dynamic_resources.effects import PatchPodExtendedResourceClaimStatus
from kubesched.simulator.api_model.store import TypedStore, bound_other_uid, conflict, not_found, patched_other_uid

_DONE = Done()
_SCHEDULED = PodCondition("PodScheduled", "True")
_ONLY_SCHEDULED = (_SCHEDULED,)
_NO_ANSWER = "no answer in the time that it may take"

DeletePod = Callable[[Pod, EvictPod], None]
"""(a pod that is not being deleted yet, why it is to go) -> None"""


def delete_pod(store: TypedStore, pod: Pod, at: str) -> None:
    """As DELETE does: a pod that no kubelet runs and no finalizer holds is gone, any other is marked with the time."""
    is_at_nodes = bool(pod.spec.node_name) and not pod.is_terminal and pod.spec.termination_grace_period_seconds != 0
    if not is_at_nodes and not pod.metadata.finalizers:
        store.remove(pod)
    elif not pod.is_terminating:
        store.write(pod, metadata=replace(pod.metadata, deletion_timestamp=at))


class PodEffects:
    def __init__(self, store: TypedStore, delete: DeletePod) -> None:
        self._store = store
        self._pods = store.of(Pod)
        self._delete = delete
        self._last_known = self._last_bound = PodStatus()
        """The status of the pod that was bound last, before and after: the next one often shares both."""

    def bind(self, action: BindPod) -> Done | Failed:
        pod = self._pods.get(action.pod)
        if pod is None:
            return not_found("pods", action.pod.rpartition("/")[2])
        if pod.metadata.uid != action.uid:
            return bound_other_uid(action.pod, action.uid, pod.metadata.uid)
        metadata, spec, status, problem = pod.metadata, pod.spec, pod.status, ""
        if metadata.deletion_timestamp is not None:
            problem = f"pod {pod.name} is being deleted, cannot be assigned to a host"
        elif spec.node_name:
            problem = f'pod {pod.name} is already assigned to node "{spec.node_name}"'
        elif spec.scheduling_gates:
            problem = f"pod {pod.name} has non-empty .spec.schedulingGates"
        if problem:
            return conflict("pods/binding", pod.name, problem)
        if status is not self._last_known:
            known = status.conditions
            conditions = merge_condition(known, _SCHEDULED) if known else _ONLY_SCHEDULED
            self._last_bound = replace(status, conditions=conditions, nominated_node_name="")
            self._last_known = status
        bound = replace(
            pod,
            metadata=replace(metadata, resource_version=self._store.next_version()),
            spec=replace(spec, node_name=action.node_name),
            status=self._last_bound,
        )
        self._store.keep(bound, action.pod)
        return _DONE

    def evict(self, action: EvictPod) -> Done | Failed:
        """A pod that is being deleted gets the condition, and is not deleted twice."""
        pod = self._find(action.pod, action.uid)
        if isinstance(pod, Failed):
            return pod
        conditions = merge_condition(pod.status.conditions, action.condition)
        if conditions != pod.status.conditions:
            pod = self._store.write(pod, status=replace(pod.status, conditions=conditions))
        if not pod.is_terminating:
            self._delete(pod, action)
        return _DONE

    def patch_status(self, action: PatchPodStatus) -> None:
        """What changes nothing is not written; the time of a probe is a change. A pod that has a node can be nominated
        for none: such a patch is refused as a whole."""
        pod = self._find(action.pod, action.uid)
        if isinstance(pod, Failed):
            return
        status, nominated = pod.status, action.nominated_node_name
        if nominated and pod.spec.node_name and nominated != status.nominated_node_name:
            return
        if action.condition is not None:
            status = replace(status, conditions=merge_condition(status.conditions, action.condition))
        if nominated is not None:
            status = replace(status, nominated_node_name=nominated)
        if status != pod.status or action.is_probe:
            self._store.write(pod, status=status)

    def patch_claim_status(self, action: PatchPodExtendedResourceClaimStatus) -> Done | Failed:
        pod = self._find(action.pod, action.uid)
        if isinstance(pod, Failed):
            return pod
        claim_status = PodExtendedResourceClaimStatus(action.resource_claim_name, action.request_mappings)
        if claim_status != pod.status.extended_resource_claim_status:
            self._store.write(pod, status=replace(pod.status, extended_resource_claim_status=claim_status))
        return _DONE

    def find_out(self, asked: FindOut) -> Done | Failed:
        """What a pod looks like tells what became of a binding or an eviction."""
        action = asked.action
        if not isinstance(action, BindPod | EvictPod):
            return Failed(f"no answer to {type(action).__name__} in the time that it may take")
        pod = self._store.find(Pod, action.pod)
        if pod is None or pod.metadata.uid != action.uid:
            return _DONE if isinstance(action, EvictPod) else not_found("pods", action.pod.rpartition("/")[2])
        is_done = pod.is_terminating if isinstance(action, EvictPod) else pod.spec.node_name == action.node_name
        return _DONE if is_done else Failed(f"no answer, and the write has not come about: {_NO_ANSWER}")

    def _find(self, key: PodKey, uid: str) -> Pod | Failed:
        """The pod to patch, or how that is refused because it is gone."""
        pod = self._store.find(Pod, key)
        if pod is None:
            return not_found("pods", key.rpartition("/")[2])
        return pod if pod.metadata.uid == uid else patched_other_uid(key, uid)
