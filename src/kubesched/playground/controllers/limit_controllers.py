"""Resource quotas and disruption budgets: how much a namespace uses, and how many pods may go now.

What a namespace uses is counted when a quota comes or changes and when something is given back. The server adds to
`status.used` what it admits; here it is recounted, from what the server has. A quota that was charged meanwhile has
another version, the write is refused, and it is counted once more.

Evictions and preemption ask budgets. A pod whose eviction was granted does not count as healthy until it is seen to go,
or two minutes have passed.

Next: `kubesched.k8s.model.limits` for what counts, and how much.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.event_forms import NORMAL, WARNING
from kubesched.k8s.model import limits as rules
from kubesched.k8s.model import quantity, selectors
from kubesched.k8s.model.apps import Deployment, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, PodDisruptionBudget, ReplicationController, Service
from kubesched.k8s.model.meta import KubeObject, OwnerReference
from kubesched.k8s.model.requests import Amounts
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.model.times import InstantError, parse_instant
from kubesched.k8s.workloads.budgets import BudgetNumbers, budget_numbers
from kubesched.k8s.workloads.replicas import scale_behind
from kubesched.playground.controllers.controller import AllKindsController, ControllerContext
from kubesched.playground.controllers.kinds import DiscoveredKind, QuotaDocument
from kubesched.playground.controllers.status import condition, with_condition_set
from kubesched.playground.controllers.whole_objects import Body

PAGE = "500"
_ENDED = ("Failed", "Succeeded")


class QuotaController(AllKindsController):
    """Keys are those of quotas."""

    name = "resourcequota"

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if item is None or not item.namespace:
            return ()
        if isinstance(after, QuotaDocument) and (before is None or _is_unknown(after)):
            return (after.key,)
        if before is not None and (after is None or _may_give_back(before, after)):
            return [quota.key for quota in self._view.in_namespace(QuotaDocument, item.namespace)]
        return ()

    async def reconcile(self, key: str) -> float | None:
        quota = self._view.find(QuotaDocument, key)
        if quota is None or quota.metadata.deletion_timestamp is not None:
            return None
        hard = {name: quantity.parse(text) for name, text in (quota.spec.get("hard") or {}).items()}
        used = await self._count(quota, hard)
        status: Body = {"hard": _texts(hard), "used": _texts(used)}
        if status == {"hard": quota.status.get("hard"), "used": quota.status.get("used")}:
            return None
        for part, texts in status.items():
            texts.update({name: None for name in quota.status.get(part) or () if name not in texts})
        patch: Body = {"metadata": {"resourceVersion": quota.metadata.resource_version}, "status": status}
        await self._context.writer.patch(quota, patch, subresource="status")
        return None

    async def _count(self, quota: QuotaDocument, hard: Amounts) -> Amounts:
        used = {name: quantity.parse(text) for name, text in (quota.status.get("used") or {}).items() if name in hard}
        selectors = rules.scope_selectors(quota.spec)
        now = datetime.fromtimestamp(self._context.now_s(), UTC)
        for resource in rules.resources_counted(hard):
            kind = await self._kind_of(resource)
            if kind is None:
                continue
            used |= dict.fromkeys(rules.counted_names(resource, hard), quantity.from_int(0))
            for obj in await self._objects(kind, quota.namespace):
                if rules.is_in_scope(resource, selectors, obj):
                    for name, amount in rules.usage(resource, obj, now).items():
                        if name in hard:
                            used[name] = used[name] + amount
        return used

    async def _kind_of(self, resource: str) -> DiscoveredKind | None:
        plural, _, group = resource.partition(".")
        kinds = await self._discovered.kinds()
        return next((kind for kind in kinds if (kind.home.plural, kind.home.group) == (plural, group)), None)

    async def _objects(self, kind: DiscoveredKind, namespace: str) -> list[dict[str, Any]]:
        """As they are at the server; none if it has the kind no more."""
        found: list[dict[str, Any]] = []
        params = {"limit": PAGE}
        while True:
            try:
                answer = await self._context.writer.api.request("GET", kind.home.path(namespace), params=params)
            except ApiError as error:
                if error.is_not_found:
                    return found
                raise
            page = msgspec.json.decode(answer)
            found += page.get("items") or []
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return found
            params = {"limit": PAGE, "continue": more}


def _is_unknown(quota: QuotaDocument) -> bool:
    """What is used is not known, or not of all that is limited."""
    hard, used = quota.status.get("hard"), quota.status.get("used")
    return hard != (quota.spec.get("hard") or {}) or any(name not in (used or {}) for name in hard or ())


def _may_give_back(before: KubeObject, after: KubeObject) -> bool:
    """Pods when they end or are resized; of the other kinds that can, too little is known here to say."""
    if isinstance(after, Pod) and isinstance(before, Pod):
        has_ended = after.status.phase in _ENDED and before.status.phase not in _ENDED
        is_resized = after.spec.containers != before.spec.containers
        return has_ended or is_resized or after.metadata.deletion_timestamp is not None
    return isinstance(after, Service | PersistentVolumeClaim | ResourceClaim)


def _texts(amounts: Amounts) -> dict[str, str | None]:
    return {name: str(amounts[name]) for name in sorted(amounts)}


GRANT_LASTS_S = 120.0
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status of the PDB cannot "
    "be calculated correctly, which may result in undefined behavior. To account for these pods please set "
    '".spec.minAvailable" field of the PDB to an integer value.'
)


class BudgetController:
    name = "disruption"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view
        self._told: dict[str, Body] = {}
        """Status last written, by the uid of the budget: the model keeps less than that."""
        self._said: dict[str, tuple[str, str]] = {}
        """Reason and note of the event last recorded, by the uid of the budget."""

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, PodDisruptionBudget):
            return () if after is None else (item.key,)
        if isinstance(item, Pod):
            budgets = self._view.in_namespace(PodDisruptionBudget, item.namespace)
            return [budget.key for budget in budgets if _covers(budget, item)]
        if isinstance(item, Deployment | ReplicaSet | StatefulSet | ReplicationController):
            return [budget.key for budget in self._view.in_namespace(PodDisruptionBudget, item.namespace)]
        return ()

    async def reconcile(self, key: str) -> float | None:
        budget = self._view.find(PodDisruptionBudget, key)
        if budget is None:
            return None
        now_s = self._context.now_s()
        pods = self._view.in_namespace(Pod, budget.namespace)
        granted, next_s = self._granted(budget, pods, now_s)
        numbers = budget_numbers(budget, pods, self._scale_of, granted)
        self._tell(budget, numbers)
        conditions = with_condition_set(self._known_conditions(budget), _condition(budget, numbers), now_s)
        status: Body = {"disruptionsAllowed": numbers.n_allowed, "conditions": conditions}
        if not numbers.problem:
            status |= {
                "observedGeneration": budget.metadata.generation or None,
                "currentHealthy": numbers.n_healthy,
                "desiredHealthy": numbers.n_needed,
                "expectedPods": numbers.n_expected,
            }
        dropped = {name: None for name in budget.status.disrupted_pods or {} if name not in granted}
        if dropped and not numbers.problem:
            status["disruptedPods"] = dropped
        if status != self._told.get(budget.metadata.uid) or budget.status.disruptions_allowed != numbers.n_allowed:
            await self._context.writer.patch(
                budget,
                {"metadata": {"resourceVersion": budget.metadata.resource_version}, "status": status},
                subresource="status",
            )
            self._told[budget.metadata.uid] = status
        return next_s

    def _known_conditions(self, budget: PodDisruptionBudget) -> list[Body]:
        """As written last; what an eviction noted since then has the same form."""
        told = self._told.get(budget.metadata.uid, {})
        known: list[Body] = told.get("conditions", [])
        return known

    def _tell(self, budget: PodDisruptionBudget, numbers: BudgetNumbers) -> None:
        """What the owner of the budget should know, once until it changes."""
        reason, note, sort = _finding(numbers)
        uid = budget.metadata.uid
        if (reason, note) != self._said.get(uid, ("", "")):
            self._said[uid] = (reason, note)
            if reason:
                self._context.event("controllermanager", budget, reason, note, sort)

    def _granted(self, budget: PodDisruptionBudget, pods: list[Pod], now_s: float) -> tuple[set[str], float | None]:
        """Pods that are about to go, and when to look again."""
        present = {pod.name for pod in pods if not pod.is_terminating and not pod.is_terminal}
        left = {
            name: _instant(since, now_s) + GRANT_LASTS_S - now_s
            for name, since in (budget.status.disrupted_pods or {}).items()
            if name in present
        }
        waiting = {name: for_s for name, for_s in left.items() if for_s > 0}
        return set(waiting), min(waiting.values(), default=None)

    def _scale_of(self, reference: OwnerReference) -> tuple[str, int] | None:
        return scale_behind(reference, self._view.by_uid)


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    return selectors.from_label_selector(budget.spec.selector).matches(pod.labels)


def _instant(text: str, otherwise_s: float) -> float:
    try:
        return parse_instant(text)
    except InstantError:
        return otherwise_s


def _condition(budget: PodDisruptionBudget, numbers: BudgetNumbers) -> Body:
    reason = "SufficientPods" if numbers.n_allowed > 0 else "InsufficientPods"
    if numbers.problem:
        reason = "SyncFailed"
    made = condition("DisruptionAllowed", numbers.n_allowed > 0, reason, numbers.problem)
    return {**made, "observedGeneration": budget.metadata.generation} if budget.metadata.generation else made


def _finding(numbers: BudgetNumbers) -> tuple[str, str, str]:
    """Reason, note and type of the event to record; no reason: none."""
    if numbers.problem:
        why = f"Failed to calculate the number of expected pods: {numbers.problem}"
        return "CalculateExpectedPodCountFailed", why, WARNING
    if numbers.unmanaged:
        return "UnmanagedPods", _UNMANAGED, WARNING
    return ("NoPods", "No matching pods found", NORMAL) if not numbers.n_expected else ("", "", NORMAL)
