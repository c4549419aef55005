"""Nodes that fall silent, and pods that leave: driven out by taints of nodes or devices, or left by their node.

A lease not renewed makes the node's readiness unknown, taints follow, and so do evictions. It counts as renewed when it
is seen to change, by this process's own clock: clocks of nodes may differ. Not ready and unreachable keep pods away and
drive them out; pressure and `kubectl cordon` only keep them away.

A pod goes once the time is over that it tolerates a taint for. Devices are tainted by their driver or by a rule, and
how far a rule has got stands in its status.

Next: `kubesched.k8s.workloads.pod_states` for how long a pod stays, `kubesched.k8s.model.resource` for the taints of
devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import msgspec

from kubesched.k8s.client.event_forms import WARNING
from kubesched.k8s.client.requester import STRATEGIC_PATCH
from kubesched.k8s.model.core import Node, Pod, Taint
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
    selects,
)
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE, tolerates
from kubesched.k8s.model.times import InstantError, parse_instant, print_instant
from kubesched.k8s.workloads.pod_states import POD_FAILED, driving_taints, is_active, is_ready, tolerated_for_s
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.kinds import LEASE_NAMESPACE, NodeLease
from kubesched.playground.controllers.status import find_condition
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


_STATUS_PERIOD_S = 10.0
"""A rule's status is written at most this often while pods leave."""
_RULE = "rule "
_IN_PROGRESS = "EvictionInProgress"
_ONCE = (
    "if the effect was NoExecute. This information will not be updated again. "
    "Recreate the DeviceTaintRule to trigger an update."
)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """When a pod has to leave, and because of which rules."""

    at_s: float
    rules: frozenset[str]


class DeviceTaintEvictionController:
    name = "device-taint-eviction"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view
        self._n_evicted: Counter[str] = Counter()
        """By the uid of the rule, since this controller started."""

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, Pod):
            return (item.key,) if after is not None and item.spec.resource_claims else ()
        if isinstance(item, ResourceClaim):
            return [f"{item.namespace}/{user.name}" for user in item.status.reserved_for or ()]
        if isinstance(item, ResourceSlice | DeviceTaintRule):
            about = [_RULE + item.name] if isinstance(item, DeviceTaintRule) and after is not None else []
            return [*self._users(), *about]
        return ()

    def _users(self) -> list[str]:
        """Pods that use devices."""
        return [pod.key for pod in self._view.of(Pod).values() if pod.spec.resource_claims and pod.spec.node_name]

    async def reconcile(self, key: str) -> float | None:
        if key.startswith(_RULE):
            return await self._report(key.removeprefix(_RULE))
        pod = self._view.find(Pod, key)
        if pod is None or pod.is_terminal or pod.is_terminating:
            return None
        leaving = self._leaving(pod)
        if leaving is None:
            return None
        left_s = leaving.at_s - self._context.now_s()
        if left_s > 0:
            return left_s
        await self._evict(pod)
        self._n_evicted.update(leaving.rules)
        for rule in self._view.of(DeviceTaintRule).values():
            if rule.metadata.uid in leaving.rules:
                await self._report(rule.name)
        return None

    def _leaving(self, pod: Pod, pretended: DeviceTaintRule | None = None) -> _Leaving | None:
        """When the pod has to leave, if so. A pretended rule counts as if its effect was NoExecute."""
        if not pod.spec.node_name:
            return None
        moments: list[tuple[float, str]] = []
        for claim in self._claims_of(pod):
            allocation = claim.status.allocation
            for result in allocation.devices.results or () if allocation is not None else ():
                for taint, rule_uid in self._taints(result, pretended):
                    at_s = _leaves_at_s(result, taint, self._context.now_s())
                    if at_s < inf:
                        moments.append((at_s, rule_uid))
        if not moments:
            return None
        return _Leaving(min(moments)[0], frozenset(uid for _, uid in moments if uid))

    def _claims_of(self, pod: Pod) -> Iterator[ResourceClaim]:
        names = [entry.resource_claim_name for entry in pod.spec.resource_claims or ()]
        names += [entry.resource_claim_name for entry in pod.status.resource_claim_statuses or ()]
        for name in names:
            claim = self._view.find(ResourceClaim, f"{pod.namespace}/{name}") if name else None
            if claim is not None and any(user.uid == pod.metadata.uid for user in claim.status.reserved_for or ()):
                yield claim

    def _taints(
        self, result: DeviceRequestAllocationResult, pretended: DeviceTaintRule | None
    ) -> Iterator[tuple[DeviceTaint, str]]:
        """What drives pods off this device, each with the uid of the rule that it comes from."""
        for slice_ in self._view.of(ResourceSlice).values():
            if (slice_.spec.driver, slice_.spec.pool.name) == (result.driver, result.pool):
                for device in slice_.spec.devices or ():
                    if device.name == result.device:
                        yield from ((taint, "") for taint in device.taints or () if taint.effect == NO_EXECUTE)
        for rule in self._view.of(DeviceTaintRule).values():
            is_driving = rule.spec.taint.effect == NO_EXECUTE or rule is pretended
            if is_driving and _is_about(rule, result.driver, result.pool, result.device):
                yield rule.spec.taint, rule.metadata.uid

    async def _evict(self, pod: Pod) -> None:
        self._context.event(self.name, pod, "DeviceTaintManagerEviction", "Marking for deletion")
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByDeviceTaintManager",
            "message": "Device Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": print_instant(self._context.now_s()),
        }
        patch = {"status": {"conditions": [condition]}}
        await self._context.writer.patch(pod, patch, subresource="status", content_type=STRATEGIC_PATCH)
        await self._context.writer.delete(pod)

    # -- the status of rules -------------------------------------------------------------------------------------------

    async def _report(self, name: str) -> float | None:
        rule = self._view.find(DeviceTaintRule, name)
        if rule is None:
            return None
        now_s = self._context.now_s()
        known = find_condition(rule.status.get("conditions", ()), _IN_PROGRESS)
        if known is not None and known.get("observedGeneration") == rule.metadata.generation:
            wait_s = _instant(known["lastTransitionTime"], now_s) + _STATUS_PERIOD_S - now_s
            if wait_s > 0 or rule.spec.taint.effect == "None":
                return wait_s if wait_s > 0 else None
        made = self._condition(rule)
        if known is not None and all(known.get(part) == value for part, value in made.items()):
            return None
        conditions = [{**made, "lastTransitionTime": print_instant(now_s)}]
        await self._context.writer.patch(rule, {"status": {"conditions": conditions}}, subresource="status")
        return _STATUS_PERIOD_S

    def _condition(self, rule: DeviceTaintRule) -> Body:
        effect, n_evicted = rule.spec.taint.effect, self._n_evicted[rule.metadata.uid]
        reason, message = "OtherEffect", "Eviction only happens for the NoExecute effect."
        n_pods, n_namespaces = self._n_pending(rule) if effect in (NO_EXECUTE, "None") else (0, 0)
        namespaces = "1 namespace" if n_namespaces == 1 else f"{n_namespaces} different namespaces"
        if effect == NO_EXECUTE:
            reason, message = "Completed" if n_evicted else "NotStarted", ""
            if n_pods:
                pods = "1 pod needs" if n_pods == 1 else f"{n_pods} pods need"
                reason, message = "PodsPendingEviction", f"{pods} to be evicted in {namespaces}."
        elif effect == "None":
            pods = _counted(n_pods, "pod")
            published, allocated = self._n_devices(rule)
            devices = f"{_counted(published, 'published device')} selected. "
            devices += f"{_counted(allocated, 'allocated device')} selected. "
            reason, message = "NoEffect", f"{devices}{pods} would be evicted in {namespaces} {_ONCE}"
        if n_evicted:
            message = f"{message} {_counted(n_evicted, 'pod')} evicted since starting the controller.".lstrip()
        return {
            "type": _IN_PROGRESS,
            "status": "True" if reason == "PodsPendingEviction" else "False",
            "reason": reason,
            "message": message,
            "observedGeneration": rule.metadata.generation,
        }

    def _n_pending(self, rule: DeviceTaintRule) -> tuple[int, int]:
        """Pods that the rule drives out, and the namespaces that they are in."""
        namespaces = []
        for pod in self._view.of(Pod).values():
            leaving = None if pod.is_terminating or pod.is_terminal else self._leaving(pod, rule)
            if leaving is not None and rule.metadata.uid in leaving.rules:
                namespaces.append(pod.namespace)
        return len(namespaces), len(set(namespaces))

    def _n_devices(self, rule: DeviceTaintRule) -> tuple[int, int]:
        slices = self._view.of(ResourceSlice).values()
        published = sum(
            _is_about(rule, slice_.spec.driver, slice_.spec.pool.name, device.name)
            for slice_ in slices
            for device in slice_.spec.devices or ()
        )
        results = [
            result
            for claim in self._view.of(ResourceClaim).values()
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results or ()
        ]
        return published, sum(_is_about(rule, one.driver, one.pool, one.device) for one in results)


def _is_about(rule: DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """A rule that selects nothing keeps new pods away from all devices, but drives nobody out."""
    return rule.spec.device_selector is not None and selects(rule, driver, pool, device)


def _leaves_at_s(result: DeviceRequestAllocationResult, taint: DeviceTaint, now_s: float) -> float:
    """When the taint drives out who uses the device; never, if it is tolerated forever."""
    since_s = now_s if taint.time_added is None else _instant(taint.time_added, now_s)
    tolerated = [
        inf if toleration.toleration_seconds is None else max(0, toleration.toleration_seconds)
        for toleration in result.tolerations or ()
        if toleration.effect == NO_EXECUTE and tolerates(toleration, taint)
    ]
    if inf in tolerated:
        return inf
    return since_s + min(tolerated, default=0)


def _counted(n: int, what: str) -> str:
    return f"1 {what}" if n == 1 else f"{n} {what}s"


def _instant(text: str, otherwise_s: float) -> float:
    try:
        return parse_instant(text)
    except InstantError:
        return otherwise_s
