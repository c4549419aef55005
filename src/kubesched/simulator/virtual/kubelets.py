"""Simulated kubelets: pods start, run for as long as they should, and end; and nodes that fail or go.

`kubesched.dev/duration` on a pod says how long it runs; without it, it runs on. `kubesched.dev/result: Failed` makes it
fail at the end of that time. A node that has failed does nothing until it recovers; then its pods go on.

A failed node is noticed after a while: then it is tainted as unreachable, and its pods are no longer ready; the taint
drives them out in their own time (`TaintEvictions`), but nobody is there to end them. Pods of a node that does not
exist any more are cleaned up after a while.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from kubesched.k8s.model.core import Node, NodeCondition, Pod, PodCondition, PodStatus, Taint
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE
from kubesched.k8s.model.times import InstantError, parse_instant
from kubesched.k8s.workloads.admission import UNREACHABLE_TAINT
from kubesched.k8s.workloads.pod_states import (
    POD_FAILED,
    POD_RUNNING,
    POD_SUCCEEDED,
    READY,
    duration_s,
    fails,
    merge_condition,
    with_condition,
)
from kubesched.simulator.virtual.deletion import Deletions, ends_at_s
from kubesched.simulator.virtual.store import ClusterStore, VirtualClock

_READY = PodCondition(READY, "True")


class Kubelets:
    def __init__(self, clock: VirtualClock, store: ClusterStore, deletions: Deletions, start_latency_s: float) -> None:
        self._clock = clock
        self._store = store
        self._deletions = deletions
        self._start_latency_s = start_latency_s
        self.failed_nodes: set[str] = set()
        self._last_known = self._last_started = PodStatus()
        """What a pod was like that started last, and is like now: the next one often shares both."""
        store.listen(self._on_change, Pod)

    def recover(self, node_name: str) -> None:
        """The node's kubelet is back, and takes up what it missed."""
        self.failed_nodes.discard(node_name)
        for pod in self._store.pods_on(node_name):
            self._take_up(pod)

    # -- what happens to pods ------------------------------------------------------------------------------------------

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if not isinstance(after, Pod) or not after.spec.node_name:
            return
        is_new = not isinstance(before, Pod) or not before.spec.node_name
        is_marked = after.metadata.deletion_timestamp is not None
        if (is_new or is_marked) and not after.is_terminal:
            if not is_marked:
                self._take_up(after)
            elif is_new or (before is not None and before.metadata.deletion_timestamp is None):
                self._later(ends_at_s(after), after, self._terminate)

    def _take_up(self, pod: Pod) -> None:
        if pod.is_terminating:
            self._later(ends_at_s(pod), pod, self._terminate)
        elif pod.status.phase != POD_RUNNING:
            self._later(self._clock.now_s + self._start_latency_s, pod, self._start)
        else:
            self._plan_end(pod, _started_s(pod, self._clock.now_s))

    def _later(self, at_s: float, pod: Pod, step: Callable[[Pod], None]) -> None:
        """The step, if the pod is still there by then, and its node works."""
        key, uid = pod.pod_key, pod.metadata.uid

        def happen() -> None:
            known = self._store.find(Pod, key)
            if known is None or known.metadata.uid != uid or known.is_terminal:
                return
            if known.spec.node_name not in self.failed_nodes:
                step(known)

        self._clock.at(at_s, happen)

    def _start(self, pod: Pod) -> None:
        if pod.is_terminating or pod.status.phase == POD_RUNNING:
            return
        known, now = pod.status, self._clock.now
        if known is not self._last_known or now != self._last_started.start_time:
            conditions = merge_condition(known.conditions, _READY)
            self._last_started = replace(known, phase=POD_RUNNING, start_time=now, conditions=conditions)
            self._last_known = known
        self._store.write(pod, status=self._last_started)
        self._plan_end(pod, self._clock.now_s)

    def _plan_end(self, pod: Pod, started_s: float) -> None:
        for_s = duration_s(pod.metadata)
        if for_s is not None:
            self._later(started_s + for_s, pod, self._complete)

    def _complete(self, pod: Pod) -> None:
        if pod.is_terminating:
            return  # its grace period ends it
        phase = POD_FAILED if fails(pod.metadata) else POD_SUCCEEDED
        ended = replace(pod, status=replace(pod.status, phase=phase))
        self._store.update(with_condition(ended, PodCondition(READY, "False", "PodCompleted")))

    def _terminate(self, pod: Pod) -> None:
        if pod.is_terminating:
            self._deletions.finish(pod)


def _started_s(pod: Pod, now_s: float) -> float:
    try:
        return parse_instant(pod.status.start_time) if pod.status.start_time else now_s
    except InstantError:
        return now_s


NOTICED_AFTER_S = 50.0
"""The controller manager's node-monitor-grace-period."""

CLEANED_UP_AFTER_S = 40.0
"""How long the pod garbage collector waits for a node that is gone to come back."""

_UNREACHABLE = (Taint(UNREACHABLE_TAINT, NO_SCHEDULE), Taint(UNREACHABLE_TAINT, NO_EXECUTE))


def as_unreachable(node: Node) -> Node:
    """The node once it was noticed that its kubelet is silent."""
    taints = (*(taint for taint in node.spec.taints or () if taint not in _UNREACHABLE), *_UNREACHABLE)
    return _with_readiness(replace(node, spec=replace(node.spec, taints=taints)), "Unknown")


class NodeFaults:
    def __init__(self, clock: VirtualClock, store: ClusterStore, kubelets: Kubelets, deletions: Deletions) -> None:
        self._clock = clock
        self._store = store
        self._kubelets = kubelets
        self._deletions = deletions
        store.listen(self._on_change, Node)

    def fail(self, node_name: str) -> None:
        self._kubelets.failed_nodes.add(node_name)
        self._clock.after(NOTICED_AFTER_S, lambda: self._notice(node_name))

    def recover(self, node_name: str) -> None:
        if node_name not in self._kubelets.failed_nodes:
            return
        node = self._store.find(Node, node_name)
        if node is not None:
            taints = tuple(taint for taint in node.spec.taints or () if taint not in _UNREACHABLE)
            self._store.update(_with_readiness(replace(node, spec=replace(node.spec, taints=taints or None)), "True"))
            self._set_pods_ready(node_name, "True")
        self._kubelets.recover(node_name)

    def _notice(self, node_name: str) -> None:
        node = self._store.find(Node, node_name)
        if node is None or node_name not in self._kubelets.failed_nodes:
            return
        self._store.update(as_unreachable(node))
        self._set_pods_ready(node_name, "False")

    def _set_pods_ready(self, node_name: str, status: str) -> None:
        for pod in self._store.pods_on(node_name):
            if pod.status.phase == POD_RUNNING:
                self._store.update(with_condition(pod, PodCondition(READY, status)))

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if isinstance(before, Node) and after is None:
            name = before.name
            self._kubelets.failed_nodes.add(name)
            self._clock.after(CLEANED_UP_AFTER_S, lambda: self._clean_up(name))
        elif isinstance(after, Node) and before is None:
            self._kubelets.recover(after.name)

    def _clean_up(self, node_name: str) -> None:
        if self._store.find(Node, node_name) is None:
            for pod in self._store.pods_on(node_name):
                self._deletions.lose(pod, f"node {node_name} is gone")


def _with_readiness(node: Node, status: str) -> Node:
    others = (known for known in node.status.conditions or () if known.type != READY)
    return replace(node, status=replace(node.status, conditions=(*others, NodeCondition(READY, status))))
