"""Nodes that fall silent: a lease not renewed makes the node's readiness unknown, taints follow, and so do evictions.

A lease counts as renewed when it is seen to change, by this process's own clock: clocks of nodes may differ.

Not ready and unreachable keep pods away and drive them out; pressure and `kubectl cordon` only keep them away.

Next: `taint_eviction` for what becomes of the pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kubesched.k8s.client.event_forms import WARNING
from kubesched.k8s.client.requester import STRATEGIC_PATCH
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.pod_states import is_active, is_ready
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.kinds import LEASE_NAMESPACE, NodeLease
from kubesched.playground.controllers.whole_objects import Body

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_BY_READINESS = {"False": NOT_READY, "Unknown": UNREACHABLE}
_OURS = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()})

TaintId = tuple[str, str]
"""Key and effect."""


def wanted_taints(node: Node) -> set[TaintId]:
    """Those that follow from the node's state; others are none of our business."""
    found: set[TaintId] = set()
    for condition in node.status.conditions or ():
        if condition.type == "Ready" and condition.status in _BY_READINESS:
            key = _BY_READINESS[condition.status]
            found |= {(key, NO_SCHEDULE), (key, NO_EXECUTE)}
        elif condition.type in _PRESSURES and condition.status == "True":
            found.add((_PRESSURES[condition.type], NO_SCHEDULE))
    if node.spec.unschedulable:
        found.add((UNSCHEDULABLE, NO_SCHEDULE))
    return found


def are_taints_right(node: Node) -> bool:
    known = {(taint.key, taint.effect) for taint in node.spec.taints or () if taint.key in _OURS}
    return known == wanted_taints(node)


def with_taints_right(taints: list[Body], wanted: set[TaintId], moment: str) -> list[Body]:
    """The node's taints, whole, with ours as they should be."""
    kept = [known for known in taints if known["key"] not in _OURS or (known["key"], known["effect"]) in wanted]
    present = {(known["key"], known["effect"]) for known in kept}
    made: list[Body] = []
    for key, effect in sorted(wanted - present):
        taint: Body = {"key": key, "effect": effect}
        if effect == NO_EXECUTE or key == UNSCHEDULABLE:
            taint["timeAdded"] = moment
        made.append(taint)
    return [*kept, *made]


GRACE_S = 50.0
"""How long a node may be silent. A lease that is held for longer is waited for."""

_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_SOURCE = "node-controller"
_REASON, _MESSAGE = "NodeStatusUnknown", "Kubelet stopped posting node status."


class NodeLifecycleController:
    name = "node-lifecycle"

    def __init__(self, context: ControllerContext, grace_s: float = GRACE_S) -> None:
        self._context = context
        self._view = context.view
        self._grace_s = grace_s
        self._heard: dict[str, tuple[str | None, float]] = {}
        """By node: the renewal last seen, and when it was seen."""

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, Node):
            return (after.name,)
        if isinstance(before, Node):
            self._heard.pop(before.name, None)
        if isinstance(after, NodeLease):
            was_known = after.name in self._heard
            self._hear(after)
            return () if was_known else (after.name,)  # a timer looks whether renewals stop
        return ()

    async def reconcile(self, key: str) -> float | None:
        node = self._view.find(Node, key)
        if node is None:
            return None
        lease = self._view.find(NodeLease, f"{LEASE_NAMESPACE}/{key}")
        if key not in self._heard:
            self._heard[key] = (None if lease is None else lease.spec.renew_time, self._context.now_s())
            note = f"Node {key} event: Registered Node {key} in Controller"
            self._context.event(_SOURCE, node, "RegisteredNode", note)
        held_s = 0.0 if lease is None else float(lease.spec.duration_s)
        left_s = self._heard[key][1] + max(self._grace_s, held_s) - self._context.now_s()
        if left_s <= 0 and _readiness(node) != "Unknown":
            await self._lose(node)
        now = self._view.find(Node, key)
        if now is not None and not are_taints_right(now):
            await self._set_taints(now)
        return left_s + 0.1 if left_s > 0 else None

    def _hear(self, lease: NodeLease) -> None:
        known = self._heard.get(lease.name)
        if known is None or known[0] != lease.spec.renew_time:
            self._heard[lease.name] = (lease.spec.renew_time, self._context.now_s())

    async def _lose(self, node: Node) -> None:
        moment = print_instant(self._context.now_s())
        conditions = [
            {
                "type": kind,
                "status": "Unknown",
                "reason": _REASON,
                "message": _MESSAGE,
                "lastTransitionTime": moment,
            }
            for kind in _CONDITIONS
        ]
        await self._patch_status(node, conditions)
        self._context.event(_SOURCE, node, "NodeNotReady", f"Node {node.name} status is now: NodeNotReady")
        for pod in self._view.pods_on(node.name):
            if is_active(pod) and is_ready(pod):
                unready = {"type": "Ready", "status": "False", "lastTransitionTime": moment}
                await self._patch_status(pod, [unready])
                self._context.event(_SOURCE, pod, "NodeNotReady", "Node is not ready", WARNING)

    async def _patch_status(self, item: Node | Pod, conditions: list[dict[str, Any]]) -> None:
        patch = {"status": {"conditions": conditions}}
        await self._context.writer.patch(item, patch, subresource="status", content_type=STRATEGIC_PATCH)

    async def _set_taints(self, node: Node) -> None:
        """The whole taints are read first: the model keeps less of them."""
        answer = await self._context.writer.api.request("GET", f"/api/v1/nodes/{node.name}")
        found = msgspec.json.decode(answer)
        wanted = wanted_taints(msgspec.convert(found, Node))
        taints = with_taints_right(
            found.get("spec", {}).get("taints") or [], wanted, print_instant(self._context.now_s())
        )
        metadata = {"resourceVersion": found["metadata"]["resourceVersion"]}
        await self._context.writer.patch(node, {"metadata": metadata, "spec": {"taints": taints or None}})


def _readiness(node: Node) -> str:
    return next((known.status for known in node.status.conditions or () if known.type == "Ready"), "")
