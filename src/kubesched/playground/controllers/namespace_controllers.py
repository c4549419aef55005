"""Namespaces: emptied when they are deleted, and given a service account and the server's CA when they come.

The certificate authority stands in every namespace as config map `kube-root-ca.crt`: pods mount it beside their tokens.
It is kept as it should be, whoever changes or deletes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.playground.controllers.controller import AllKindsController, ControllerContext
from kubesched.playground.controllers.kinds import (
    ConfigMap,
    DiscoveredKind,
    DiscoveredKinds,
    NamespacePhase,
    ServiceAccount,
)
from kubesched.playground.controllers.whole_objects import Body

CONFIG_MAP = "kube-root-ca.crt"
_KEY = "ca.crt"
_DESCRIPTION_KEY = "kubernetes.io/description"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class RootCaPublisher:
    """Keys are names of namespaces."""

    name = "root-ca-certificate-publisher"

    def __init__(self, context: ControllerContext, root_ca_pem: str) -> None:
        self._context = context
        self._data = {_KEY: root_ca_pem}

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, NamespacePhase) and after is not None:
            return (item.name,)
        if isinstance(item, ConfigMap) and item.name == CONFIG_MAP:
            return (item.namespace,)
        return ()

    async def reconcile(self, key: str) -> float | None:
        if not _is_living(self._context, key):
            return None
        published = self._context.view.find(ConfigMap, f"{key}/{CONFIG_MAP}")
        if published is None:
            await self._publish(key)
        elif published.data != self._data or _DESCRIPTION_KEY not in (published.metadata.annotations or {}):
            await self._mend(published)
        return None

    async def _publish(self, namespace: str) -> None:
        metadata = ObjectMeta(name=CONFIG_MAP, namespace=namespace, annotations={_DESCRIPTION_KEY: _DESCRIPTION})
        await _create_missing(self._context, ConfigMap(metadata=metadata, data=self._data))

    async def _mend(self, published: ConfigMap) -> None:
        strangers = {name: None for name in published.data or () if name != _KEY}
        annotations = {_DESCRIPTION_KEY: _DESCRIPTION, **(published.metadata.annotations or {})}
        patch: Body = {
            "metadata": {"resourceVersion": published.metadata.resource_version, "annotations": annotations},
            "data": {**strangers, **self._data},
        }
        await self._context.writer.patch(published, patch)


FINALIZER = "kubernetes"
LOOK_AGAIN_S = 0.5
"""Pods take their time to go."""

DEFAULT_ACCOUNT = "default"
_PODS = ("", "pods")


@dataclass(slots=True)
class Remains:
    """What is still in a namespace that goes."""

    n_by_resource: dict[str, int] = field(default_factory=dict)
    n_by_finalizer: dict[str, int] = field(default_factory=dict)
    failures: list[ApiError] = field(default_factory=list)

    @property
    def n_left(self) -> int:
        return sum(self.n_by_resource.values()) + len(self.failures)

    def conditions(self) -> Iterator[tuple[str, str, str, str]]:
        """Type, status, reason and message of each."""
        yield (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        )
        yield (
            *("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions"),
            "All legacy kube types successfully parsed",
        )
        if self.failures:
            listed = ", ".join(sorted(str(failure) for failure in self.failures))
            why = f"Failed to delete all resource types, {len(self.failures)} remaining: {listed}"
            yield "NamespaceDeletionContentFailure", "True", "ContentDeletionFailed", why
        else:
            why = "All content successfully deleted, may be waiting on finalization"
            yield "NamespaceDeletionContentFailure", "False", "ContentDeleted", why
        if self.n_by_resource:
            listed = ", ".join(f"{name} has {n} resource instances" for name, n in sorted(self.n_by_resource.items()))
            yield "NamespaceContentRemaining", "True", "SomeResourcesRemain", f"Some resources are remaining: {listed}"
        else:
            yield "NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed"
        if self.n_by_finalizer:
            listed = ", ".join(f"{name} in {n} resource instances" for name, n in sorted(self.n_by_finalizer.items()))
            why = f"Some content in the namespace has finalizers remaining: {listed}"
            yield "NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", why
        else:
            why = "All content-preserving finalizers finished"
            yield "NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", why


class NamespaceController(AllKindsController):
    """Deletes all that is in a namespace, pods before everything else, and then lets it go."""

    name = "namespace"

    def __init__(self, context: ControllerContext, discovered: DiscoveredKinds) -> None:
        super().__init__(context, discovered)
        self._api = context.writer.api

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        is_going = isinstance(after, NamespacePhase) and after.metadata.deletion_timestamp is not None
        return (after.key,) if is_going and after is not None else ()

    async def reconcile(self, key: str) -> float | None:
        namespace = self._context.view.find(NamespacePhase, key)
        if namespace is None or FINALIZER not in _finalizers(namespace):
            return None
        kinds = [kind for kind in await self._discovered.kinds() if kind.home.namespaced]
        pods = [kind for kind in kinds if (kind.home.group, kind.home.plural) == _PODS]
        others = [kind for kind in kinds if (kind.home.group, kind.home.plural) != _PODS]
        remains = await self._empty(pods, key)
        if not remains.n_left:  # whatever pods may need stays until they are gone
            remains = await self._empty(others, key)
        await self._tell(namespace, remains)
        if remains.failures:
            raise remains.failures[0]
        if remains.n_left:
            return LOOK_AGAIN_S
        namespace = self._context.view.find(NamespacePhase, key) or namespace
        kept = [name for name in _finalizers(namespace) if name != FINALIZER]
        body: Body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": key, "resourceVersion": namespace.metadata.resource_version},
            "spec": {"finalizers": kept},
        }
        await self._api.request("PUT", f"/api/v1/namespaces/{key}/finalize", body=msgspec.json.encode(body))
        return None

    async def _empty(self, kinds: Iterable[DiscoveredKind], namespace: str) -> Remains:
        remains = Remains()
        for kind in kinds:
            try:
                left = await self._empty_of(kind, namespace)
            except ApiError as error:
                if not error.is_not_found:
                    remains.failures.append(error)
                continue
            if left:
                remains.n_by_resource[f"{kind.home.plural}.{kind.home.group}"] = len(left)
            for name in (name for item in left for name in item["metadata"].get("finalizers") or ()):
                remains.n_by_finalizer[name] = remains.n_by_finalizer.get(name, 0) + 1
        return remains

    async def _empty_of(self, kind: DiscoveredKind, namespace: str) -> list[Body]:
        """What is left of a kind, or some of it."""
        path = kind.home.path(namespace)
        left: list[Body] = await self._list(path)
        if all(item["metadata"].get("deletionTimestamp") for item in left):
            return left
        if "deletecollection" in kind.verbs:
            await self._api.request("DELETE", path, body=b'{"propagationPolicy":"Background"}')
        else:
            for item in left:
                await self._delete_one(f"{path}/{item['metadata']['name']}")
        return await self._list(path)

    async def _list(self, path: str) -> list[Body]:
        found = msgspec.json.decode(await self._api.request("GET", path, params={"limit": "500"}))
        return found.get("items") or []

    async def _delete_one(self, path: str) -> None:
        try:
            await self._api.request("DELETE", path, body=b'{"propagationPolicy":"Background"}')
        except ApiError as error:
            if not error.is_not_found:
                raise

    async def _tell(self, namespace: NamespacePhase, remains: Remains) -> None:
        """Says in the namespace's conditions what stands in the way."""
        known = {one["type"]: one for one in namespace.status.get("conditions") or ()}
        now = datetime.fromtimestamp(self._context.now_s(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        told = []
        for kind, status, reason, message in remains.conditions():
            before = known.get(kind) or {}
            since = before["lastTransitionTime"] if before.get("status") == status else now
            told.append(
                {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
            )
        if told != list(namespace.status.get("conditions") or ()):
            version = {"resourceVersion": namespace.metadata.resource_version}
            patch: Body = {"metadata": version, "status": {"conditions": told}}
            await self._context.writer.patch(namespace, patch, subresource="status")


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
        is_missing = self._context.view.find(ServiceAccount, f"{key}/{DEFAULT_ACCOUNT}") is None
        if is_missing and _is_living(self._context, key):
            metadata = ObjectMeta(name=DEFAULT_ACCOUNT, namespace=key)
            await _create_missing(self._context, ServiceAccount(metadata=metadata))
        return None


def _is_living(context: ControllerContext, name: str) -> bool:
    namespace = context.view.find(NamespacePhase, name)
    return namespace is not None and namespace.metadata.deletion_timestamp is None


async def _create_missing(context: ControllerContext, item: KubeObject) -> None:
    """Somebody else may have made it meanwhile."""
    try:
        await context.writer.create(item)
    except ApiError as error:
        if not error.is_already_exists:
            raise


def _finalizers(namespace: NamespacePhase) -> list[str]:
    found = namespace.spec.get("finalizers")
    return [str(name) for name in found] if isinstance(found, list) else []
