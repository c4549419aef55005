"""Why pods are still without a node at the end of a run."""

from __future__ import annotations

from kubesched.k8s.model.core import Pod
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.simulator.virtual.cluster import VirtualCluster

NOT_TRIED = "not tried yet"


def pending_messages(cluster: VirtualCluster) -> dict[str, str]:
    """By the pod's uid: what the scheduler last said, or why it never looked at the pod."""
    found = {}
    for record in cluster.ledger.pods.values():
        if record.node or record.is_gone:
            continue
        pod = cluster.store.find(Pod, record.key)
        if pod is not None and pod.metadata.uid == record.uid and not pod.is_terminal:
            found[record.uid] = _unasked(cluster, pod) or record.message or NOT_TRIED
    return found


def _unasked(cluster: VirtualCluster, pod: Pod) -> str:
    """Why the scheduler does not even try; empty if it does."""
    scheduler = cluster.loop.schedulers.get(pod.spec.scheduler_name)
    if scheduler is None:
        return f'no scheduler is called "{pod.spec.scheduler_name}"'
    info = cluster.loop.cluster.pending.get(pod.pod_key)
    gate = None if info is None else checked_pre_enqueue(scheduler.profile, info)
    return "" if gate is None or gate.is_success else gate.message
