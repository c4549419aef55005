"""Resource quotas: counts what a namespace uses, when a quota comes or changes and when something is given back.

The server adds to `status.used` what it admits; here it is recounted, from what the server has. A quota that was
charged meanwhile has another version, the write is refused, and it is counted once more.

Next: `kubesched.k8s.model.quota_usage` for what counts, and how much.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.model import quantity
from kubesched.k8s.model import quota_usage as rules
from kubesched.k8s.model.core import Pod, Service
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import Amounts
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.playground.controllers.controller import AllKindsController
from kubesched.playground.controllers.kinds import DiscoveredKind, QuotaDocument
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
