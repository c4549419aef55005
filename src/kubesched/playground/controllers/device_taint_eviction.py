"""Pods whose devices are tainted NoExecute, by their driver or by a rule: they leave when they no longer tolerate it.

How far a rule has got stands in its status. Next: `kubesched.k8s.model.resource` for the taints themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from kubesched.k8s.client.requester import STRATEGIC_PATCH
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
    selects,
)
from kubesched.k8s.model.taints import tolerates
from kubesched.k8s.model.times import InstantError, parse_instant, print_instant
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.documents import Body
from kubesched.playground.controllers.status.conditions import find_condition

NO_EXECUTE = "NoExecute"
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
    """When the taint drives out who uses the device; never, if it is tolerated for ever."""
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
