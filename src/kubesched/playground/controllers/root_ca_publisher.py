"""The server's certificate authority in every namespace, as config map `kube-root-ca.crt`: pods mount it beside their
tokens. Kept as it should be, whoever changes or deletes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.documents import Body
from kubesched.playground.controllers.kinds import ConfigMap, NamespacePhase

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
        view = self._context.view
        namespace = view.find(NamespacePhase, key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return None
        published = view.find(ConfigMap, f"{key}/{CONFIG_MAP}")
        if published is None:
            await self._publish(key)
        elif published.data != self._data or _DESCRIPTION_KEY not in (published.metadata.annotations or {}):
            await self._mend(published)
        return None

    async def _publish(self, namespace: str) -> None:
        metadata = ObjectMeta(name=CONFIG_MAP, namespace=namespace, annotations={_DESCRIPTION_KEY: _DESCRIPTION})
        try:
            await self._context.writer.create(ConfigMap(metadata=metadata, data=self._data))
        except ApiError as error:
            if not error.is_already_exists:
                raise

    async def _mend(self, published: ConfigMap) -> None:
        strangers = {name: None for name in published.data or () if name != _KEY}
        annotations = {_DESCRIPTION_KEY: _DESCRIPTION, **(published.metadata.annotations or {})}
        patch: Body = {
            "metadata": {"resourceVersion": published.metadata.resource_version, "annotations": annotations},
            "data": {**strangers, **self._data},
        }
        await self._context.writer.patch(published, patch)
