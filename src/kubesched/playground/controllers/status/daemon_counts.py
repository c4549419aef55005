"""The status of daemon sets: nodes that should have a daemon, and nodes that have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.workloads import DaemonSet
from kubesched.k8s.workloads.daemon_nodes import DaemonRules, node_of, with_daemon_tolerations
from kubesched.k8s.workloads.pod_states import is_available, is_healthy
from kubesched.k8s.workloads.revisions import REVISION_HASH_LABEL
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE
from kubesched.playground.controllers.documents import Body


def daemon_set_status(
    owner: DaemonSet, pods: Sequence[Pod], nodes: Iterable[Node], revision: str, now_s: float
) -> Body:
    rules = DaemonRules.of(with_daemon_tolerations((owner.spec.template or EMPTY_TEMPLATE).spec))
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if not pod.is_terminal and not pod.is_terminating:
            by_node.setdefault(node_of(pod), []).append(pod)
    n_desired = n_current = n_ready = n_available = n_updated = n_misplaced = 0
    for node in nodes:
        here = by_node.get(node.name, [])
        if not rules.should_run_on(node):
            n_misplaced += bool(here)
            continue
        n_desired += 1
        n_current += bool(here)
        n_ready += any(map(is_healthy, here))
        n_available += any(is_available(pod, owner.spec.min_ready_seconds, now_s) for pod in here)
        n_updated += any(pod.labels.get(REVISION_HASH_LABEL) == revision for pod in here)
    return {
        "currentNumberScheduled": n_current,
        "desiredNumberScheduled": n_desired,
        "numberMisscheduled": n_misplaced,
        "numberReady": n_ready,
        "numberAvailable": n_available or None,
        "numberUnavailable": (n_desired - n_available) or None,
        "updatedNumberScheduled": n_updated or None,
        "observedGeneration": owner.metadata.generation or None,
    }
