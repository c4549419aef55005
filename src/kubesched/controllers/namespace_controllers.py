"""Namespaces: emptied when they are deleted, and given a service account when they come.

Next: `root_ca_publisher` for what else each of them has.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubesched.client.errors import ApiError
from kubesched.controllers.controller import ControllerContext
from kubesched.controllers.discovered import DiscoveredKind, DiscoveredKinds
from kubesched.controllers.documents import Body
from kubesched.controllers.kinds import NamespacePhase, ServiceAccount
from kubesched.model.meta import KubeObject, ObjectMeta

FINALIZER = "kubernetes"
LOOK_AGAIN_S = 0.5
"""Pods take their time to go."""

DEFAULT_ACCOUNT = "default"


class NamespaceController:
    """Deletes all that is in a namespace, and then lets it go."""

    name = "namespace"

    def __init__(self, context: ControllerContext, discovered: DiscoveredKinds) -> None:
        self._context = context
        self._api = context.writer.api
        self._discovered = discovered

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        is_going = isinstance(after, NamespacePhase) and after.metadata.deletion_timestamp is not None
        return (after.key,) if is_going and after is not None else ()

    async def reconcile(self, key: str) -> float | None:
        namespace = self._context.view.find(NamespacePhase, key)
        if namespace is None or FINALIZER not in _finalizers(namespace):
            return None
        n_left = 0
        for kind in await self._discovered.kinds():
            if kind.home.namespaced:
                n_left += await self._empty(kind, key)
        if n_left:
            return LOOK_AGAIN_S
        kept = [name for name in _finalizers(namespace) if name != FINALIZER]
        body: Body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": key, "resourceVersion": namespace.metadata.resource_version},
            "spec": {"finalizers": kept},
        }
        await self._api.request("PUT", f"/api/v1/namespaces/{key}/finalize", body=msgspec.json.encode(body))
        return None

    async def _empty(self, kind: DiscoveredKind, namespace: str) -> int:
        """How many are left, at least."""
        path = kind.home.path(namespace)
        found = msgspec.json.decode(await self._api.request("GET", path, params={"limit": "500"}))
        left = found.get("items") or []
        going = [item for item in left if item["metadata"].get("deletionTimestamp")]
        if len(going) == len(left):
            return len(left)
        if "deletecollection" in kind.verbs:
            await self._api.request("DELETE", path, body=b'{"propagationPolicy":"Background"}')
            return len(left)
        for item in left:
            await self._delete_one(f"{path}/{item['metadata']['name']}")
        return len(left)

    async def _delete_one(self, path: str) -> None:
        try:
            await self._api.request("DELETE", path, body=b'{"propagationPolicy":"Background"}')
        except ApiError as error:
            if not error.is_not_found:
                raise


class ServiceAccountController:
    """Every namespace has a service account `default`."""

    name = "serviceaccount"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, NamespacePhase):
            return (after.key,)
        if isinstance(before, ServiceAccount) and after is None:
            return (before.namespace,)
        return ()

    async def reconcile(self, key: str) -> float | None:
        view = self._context.view
        namespace = view.find(NamespacePhase, key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return None
        if view.find(ServiceAccount, f"{key}/{DEFAULT_ACCOUNT}") is None:
            account = ServiceAccount(metadata=ObjectMeta(name=DEFAULT_ACCOUNT, namespace=key))
            try:
                await self._context.writer.create(account)
            except ApiError as error:
                if not error.is_already_exists:
                    raise
        return None


def _finalizers(namespace: NamespacePhase) -> list[str]:
    found = namespace.spec.get("finalizers")
    return [str(name) for name in found] if isinstance(found, list) else []
