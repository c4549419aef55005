"""Simulated kubelets: pods start, run for as long as they should, and end; and nodes that fail, are drained, or go.

`kubesched.dev/duration` on a pod says how long it runs; without it, it runs on. `kubesched.dev/result: Failed` makes it
fail at the end of that time. A node that has failed does nothing until it recovers; then its pods go on. It is noticed
after a while: then it is tainted as unreachable, and its pods are no longer ready; the taint drives them out in their
own time (`TaintEvictions`), but there is no kubelet to end them. Pods of a node that does not exist any more are
cleaned up after a while.

What is deleted takes along what belongs to it. A pod without a node, or one that has finished, goes at once. Another
one is marked, and its kubelet ends it when its grace period is over. A pod of a job is kept until the job has counted
it.

Draining a node means that no pods come, and all leave that disruption budgets allow to. Daemons stay, as with `kubectl
drain --ignore-daemonsets --force --delete-emptydir-data`. A pod that a budget protects is asked again whenever a budget
changes. Taints with the effect NoExecute drive pods out as well: at once, or when the time is over that they tolerate
it for. Which pods each budget covers is kept up to date (`BudgetCoverage`): a change of a pod costs its own budgets,
not all.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from kubesched.k8s.model.apps import Job
from kubesched.k8s.model.core import Node, NodeCondition, Pod, PodCondition, PodDisruptionBudget, PodStatus, Taint
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE_TAINT
from kubesched.k8s.model.times import InstantError, parse_instant, print_instant
from kubesched.k8s.workloads.admission import DEFAULT_GRACE_S, UNREACHABLE_TAINT
from kubesched.k8s.workloads.budgets import BudgetSelectors
from kubesched.k8s.workloads.job_pods import JOB_FINALIZER
from kubesched.k8s.workloads.pod_states import (
    POD_FAILED,
    POD_PENDING,
    POD_RUNNING,
    POD_SUCCEEDED,
    READY,
    belongs_to_its_node,
    driving_taints,
    duration_s,
    fails,
    merge_condition,
    tolerated_for_s,
    with_condition,
)
from kubesched.simulator.virtual.store import ClusterStore, VirtualClock

Cause = str
"""Why a pod had to go, in a few words."""

DELETED = "deleted"
OWNER_DELETED = "owner deleted"


class Deletions:
    def __init__(self, clock: VirtualClock, store: ClusterStore, note: Callable[[Pod, Cause], None]) -> None:
        """`note` hears of every pod that is asked to go, and why."""
        self._clock = clock
        self._store = store
        self._note = note
        store.listen(self._on_change, Pod)

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
        """The pod has ended, or its kubelet will never be heard from again: it goes for good."""
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
            self._note(pod, cause)
        self.finish(pod)

    def _delete_pod(self, pod: Pod, cause: Cause) -> None:
        if pod.is_terminating:
            return
        self._note(pod, cause)
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
        if after is None or after.metadata.deletion_timestamp is None:
            return
        if not isinstance(after, Pod) or not after.is_terminal:
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


class Drains:
    def __init__(
        self, clock: VirtualClock, store: ClusterStore, deletions: Deletions, coverage: BudgetCoverage
    ) -> None:
        self._clock = clock
        self._coverage = coverage
        self._store = store
        self._deletions = deletions
        self._under_way: dict[str, None] = {}
        self._is_planned = False
        store.listen(self._on_change, PodDisruptionBudget)

    def start(self, node_name: str) -> None:
        self.cordon(node_name)
        self._under_way[node_name] = None
        self._go_on()

    def cordon(self, node_name: str, *, closed: bool = True) -> None:
        node = self._store.find(Node, node_name)
        if node is None:
            return
        if not closed:
            self._under_way.pop(node_name, None)
        others = tuple(taint for taint in node.spec.taints or () if taint != UNSCHEDULABLE_TAINT)
        taints = (*others, UNSCHEDULABLE_TAINT) if closed else others
        self._store.update(replace(node, spec=replace(node.spec, unschedulable=closed, taints=taints or None)))

    def blocked(self) -> dict[str, list[Pod]]:
        """Nodes whose draining waits for a budget, and the pods that it waits for."""
        found = {name: [pod for pod in self._to_leave(name) if not pod.is_terminating] for name in self._under_way}
        return {name: pods for name, pods in found.items() if pods}

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if self._under_way and not self._is_planned:
            self._is_planned = True
            self._clock.after(0.0, self._go_on)

    def _go_on(self) -> None:
        self._is_planned = False
        for node_name in list(self._under_way):
            leaving = self._to_leave(node_name)
            for pod in leaving:
                if not pod.is_terminating and self._may_go(pod):
                    self._deletions.delete(pod, f"drained from {node_name}")
            if not leaving:
                del self._under_way[node_name]

    def _to_leave(self, node_name: str) -> list[Pod]:
        return [pod for pod in self._store.pods_on(node_name) if not belongs_to_its_node(pod)]

    def _may_go(self, pod: Pod) -> bool:
        """Whether no budget forbids it; if one covers the pod, it is charged."""
        known = self._store.of(PodDisruptionBudget)
        budgets = [known[key] for key in self._coverage.budgets_of(pod) if key in known]
        if pod.status.phase == POD_PENDING or not budgets:
            return True
        budget = budgets[0]
        if len(budgets) > 1 or budget.status.disruptions_allowed <= 0:
            return False  # the eviction API refuses a pod that several budgets cover
        status = replace(budget.status, disruptions_allowed=budget.status.disruptions_allowed - 1)
        self._store.update(replace(budget, status=status))
        return True


class TaintEvictions:
    def __init__(self, clock: VirtualClock, store: ClusterStore, deletions: Deletions) -> None:
        self._clock = clock
        self._store = store
        self._deletions = deletions
        self._deadlines_s: dict[str, float] = {}
        """By the pod's uid. A deadline that was replaced or taken back is not here any more."""
        store.listen(self._on_change, Node, Pod)

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if isinstance(before, Pod) and after is not None and before.spec.node_name:
            return
        if isinstance(after, Node):
            old = before if isinstance(before, Node) else None
            if driving_taints(after) != (() if old is None else driving_taints(old)):
                for pod in self._store.pods_on(after.name):
                    self._consider(pod, after)
        elif isinstance(after, Pod) and after.spec.node_name and not after.is_terminal:
            node = self._store.find(Node, after.spec.node_name)
            if node is not None and driving_taints(node):
                self._consider(after, node)
        elif isinstance(before, Pod) and after is None:
            self._deadlines_s.pop(before.metadata.uid, None)

    def _consider(self, pod: Pod, node: Node) -> None:
        uid = pod.metadata.uid
        for_s = tolerated_for_s(pod.spec.tolerations or (), driving_taints(node))
        if for_s is None:
            self._deadlines_s.pop(uid, None)
            return
        deadline_s = self._clock.now_s + for_s
        if self._deadlines_s.get(uid, deadline_s + 1) <= deadline_s:
            return  # another taint drives it out sooner
        self._deadlines_s[uid] = deadline_s
        taints = ", ".join(dict.fromkeys(taint.key for taint in driving_taints(node)))

        def drive_out() -> None:
            if self._deadlines_s.get(uid) == deadline_s:
                del self._deadlines_s[uid]
                self._deletions.delete(pod, f"driven out of {node.name} by taint {taints}")

        self._clock.at(deadline_s, drive_out)


class BudgetCoverage:
    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._selectors = BudgetSelectors()
        self._pods: dict[str, dict[str, Pod]] = {}
        """By the budget's key: those of its pods that have not finished."""
        store.listen(self._on_pod, Pod)
        store.listen(self._on_budget, PodDisruptionBudget)

    def budgets_of(self, pod: Pod) -> list[str]:
        """Their keys."""
        return self._selectors.covering(pod.namespace, pod.labels)

    def pods_of(self, budget: PodDisruptionBudget) -> list[Pod]:
        return list(self._pods.get(budget.key, {}).values())

    def _on_pod(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if not self._pods:
            return
        if isinstance(before, Pod):
            for key in self.budgets_of(before):
                self._pods[key].pop(before.key, None)
        if isinstance(after, Pod) and not after.is_terminal:
            for key in self.budgets_of(after):
                self._pods[key][after.key] = after

    def _on_budget(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if isinstance(before, PodDisruptionBudget):
            if isinstance(after, PodDisruptionBudget) and before.spec == after.spec:
                return
            self._selectors.remove(before)
            self._pods.pop(before.key, None)
        if isinstance(after, PodDisruptionBudget):
            self._selectors.put(after)
            there = self._store.pods_in(after.namespace)
            self._pods[after.key] = {pod.key: pod for pod in there if after.key in self.budgets_of(pod)}


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
