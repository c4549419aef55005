"""How objects go: what belongs to them goes too, and pods that run are given their time.

A pod without a node, or one that has finished, goes at once. Another one is marked, and its kubelet ends it when its
grace period is over. A pod of a job is kept until the job has counted it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.times import parse_instant, print_instant
from kubesched.k8s.model.workloads import Job
from kubesched.k8s.workloads.admission import DEFAULT_GRACE_S
from kubesched.k8s.workloads.job_pods import JOB_FINALIZER
from kubesched.k8s.workloads.pod_states import POD_FAILED
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.store import ClusterStore

Cause = str
"""Why a pod had to go, in a few words."""

DELETED = "deleted"
OWNER_DELETED = "owner deleted"


class Deletions:
    def __init__(self, clock: VirtualClock, store: ClusterStore, told: Callable[[Pod, Cause], None]) -> None:
        """`told` hears of every pod that is asked to go, and why."""
        self._clock = clock
        self._store = store
        self._told = told
        store.listen(self._on_change)

    def delete(self, item: KubeObject, cause: Cause = DELETED) -> None:
        known = self._store.find(type(item), item.key)
        if known is None or known.metadata.uid != item.metadata.uid:
            return
        if isinstance(known, Pod):
            self._delete_pod(known, cause)
        else:
            self._store.remove(known)
            self._delete_owned(known)

    def finish(self, pod: Pod) -> None:
        """The pod has ended, or nobody will ever hear from it again: it goes for good."""
        known = self._store.find(Pod, pod.pod_key)
        if known is None or known.metadata.uid != pod.metadata.uid:
            return
        if self._is_awaited(known):
            phase = known.status.phase if known.is_terminal else POD_FAILED
            self._store.update(replace(_marked(known, self._clock.now_s), status=replace(known.status, phase=phase)))
        else:
            self._store.remove(known)
            self._delete_owned(known)

    def lose(self, pod: Pod, cause: Cause) -> None:
        """The pod's node is gone: it goes for good, without time to end."""
        if not pod.is_terminating:
            self._told(pod, cause)
        self.finish(pod)

    def _delete_pod(self, pod: Pod, cause: Cause) -> None:
        if pod.is_terminating:
            return
        self._told(pod, cause)
        if pod.is_terminal or not pod.spec.node_name:
            self.finish(pod)
        else:
            self._store.update(_marked(pod, self._clock.now_s + grace_s(pod)))

    def _delete_owned(self, owner: KubeObject) -> None:
        for item in self._store.owned(owner.metadata.uid, KubeObject):
            self.delete(item, OWNER_DELETED)

    def _is_awaited(self, pod: Pod) -> bool:
        if JOB_FINALIZER not in (pod.metadata.finalizers or ()):
            return False
        owner = controller_of(pod.metadata)
        job = None if owner is None else self._store.by_uid(owner.uid)
        return isinstance(job, Job) and not job.is_finished

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        """A pod that was only kept to be counted goes when that is done."""
        if not isinstance(after, Pod) or not after.is_terminating or not after.is_terminal:
            return
        if not self._is_awaited(after):
            pod = after
            self._clock.after(0.0, lambda: self.finish(pod))


def grace_s(pod: Pod) -> float:
    seconds = pod.spec.termination_grace_period_seconds
    return float(DEFAULT_GRACE_S if seconds is None else seconds)


def ends_at_s(pod: Pod) -> float:
    """When the grace period of a pod that is marked is over."""
    assert pod.metadata.deletion_timestamp is not None
    return parse_instant(pod.metadata.deletion_timestamp)


def _marked(pod: Pod, at_s: float) -> Pod:
    if pod.is_terminating:
        return pod
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=print_instant(at_s)))
