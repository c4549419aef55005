"""Pods that leave: driven out by taints once the time is over that they tolerate them for, or left by their node.

Next: `kubesched.k8s.workloads.pod_states` for how long a pod stays.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.client.requester import STRATEGIC_PATCH
from kubesched.k8s.model.core import Node, Pod, Taint
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.pod_states import POD_FAILED, driving_taints, tolerated_for_s
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.documents import Body

QUARANTINE_S = 40.0
"""How long a pod may name a node that does not exist."""


class TaintEvictionController:
    name = "taint-eviction"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view
        self._since: dict[str, tuple[tuple[Taint, ...], float]] = {}
        """By the pod's uid: the taints that it is to leave for, and since when."""

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, Node):
            old = () if not isinstance(before, Node) else driving_taints(before)
            if driving_taints(after) == old:
                return ()
            return [pod.key for pod in self._view.pods_on(after.name)]
        if isinstance(after, Pod):
            was_there = isinstance(before, Pod) and bool(before.spec.node_name)
            node = self._view.find(Node, after.spec.node_name) if after.spec.node_name and not was_there else None
            return (after.key,) if node is not None and driving_taints(node) else ()
        if isinstance(before, Pod):
            self._since.pop(before.metadata.uid, None)
        return ()

    async def reconcile(self, key: str) -> float | None:
        pod = self._view.find(Pod, key)
        node = None if pod is None else self._view.find(Node, pod.spec.node_name)
        if pod is None or node is None or pod.is_terminal or pod.is_terminating:
            return None
        taints, uid = driving_taints(node), pod.metadata.uid
        for_s = tolerated_for_s(pod.spec.tolerations or (), taints)
        if for_s is None:
            self._since.pop(uid, None)
            return None
        now_s = self._context.now_s()
        known = self._since.get(uid)
        if known is None:
            known = self._since[uid] = (taints, now_s)
        left_s = known[1] + for_s - now_s
        if left_s > 0:
            return left_s
        await self._evict(pod)
        return None

    async def _evict(self, pod: Pod) -> None:
        note = f"Marking for deletion Pod {pod.key}"
        self._context.event("taint-eviction-controller", pod, "TaintManagerEviction", note)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": print_instant(self._context.now_s()),
        }
        patch = {"status": {"conditions": [condition]}}
        await self._context.writer.patch(pod, patch, subresource="status", content_type=STRATEGIC_PATCH)
        await self._context.writer.delete(pod)


class OrphanedPodController:
    """Pods whose node is gone, and deleted pods that never had one: nobody else will end them."""

    name = "pod-garbage-collector"

    def __init__(self, context: ControllerContext, quarantine_s: float = QUARANTINE_S) -> None:
        self._context = context
        self._view = context.view
        self._quarantine_s = quarantine_s
        self._since_s: dict[str, float] = {}
        """By node: since when it is missed."""

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(before, Node) and after is None:
            return [pod.key for pod in self._view.pods_on(before.name)]
        if isinstance(after, Node):
            self._since_s.pop(after.name, None)
        if isinstance(after, Pod) and (_is_left(after) or self._has_lost_its_node(after)):
            return (after.key,)
        return ()

    def _has_lost_its_node(self, pod: Pod) -> bool:
        return bool(pod.spec.node_name) and self._view.find(Node, pod.spec.node_name) is None

    async def reconcile(self, key: str) -> float | None:
        pod = self._view.find(Pod, key)
        if pod is not None and _is_left(pod):
            await self._end(pod, {})
            return None
        if pod is None or not self._has_lost_its_node(pod):
            return None
        now_s = self._context.now_s()
        left_s = self._since_s.setdefault(pod.spec.node_name, now_s) + self._quarantine_s - now_s
        if left_s > 0:
            return left_s
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": print_instant(now_s),
        }
        await self._end(pod, {"conditions": [condition]})
        return None

    async def _end(self, pod: Pod, told: Body) -> None:
        """Who counts pods that failed is to see this one among them, if it is held until then."""
        if not pod.is_terminal and pod.metadata.finalizers:
            patch = {"status": {"phase": POD_FAILED, **told}}
            await self._context.writer.patch(pod, patch, subresource="status", content_type=STRATEGIC_PATCH)
        await self._context.writer.delete(pod, grace_s=0)


def _is_left(pod: Pod) -> bool:
    """Deleted, and no kubelet will ever see it; only who holds it by a finalizer."""
    return pod.is_terminating and not pod.spec.node_name and not pod.is_terminal and bool(pod.metadata.finalizers)
