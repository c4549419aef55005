import asyncio
import logging
import sys
from pathlib import Path

import msgspec

import kubesched.k8s.client as kube
from kubesched.k8s.model.core import Namespace
from kubesched.k8s.model.meta import KubeObject


class ConfigMap(KubeObject, frozen=True):
    data: dict[str, str] | None = None


class Greetings:
    """Every namespace with a label `greeting` has a ConfigMap of that name which says it; one without has none."""

    def __init__(self, client: kube.RestClient) -> None:
        self.client, self.queue = client, kube.WorkQueue()
        ours = kube.ListOptions(label_selector="managed-by=greetings")
        self.informers = kube.Informers(client, settings=kube.InformerSettings(list_options={ConfigMap: ours}))
        self.home = kube.Resource(ConfigMap, "", "v1", "configmaps", namespaced=True)
        self.namespaces, self.maps = self.informers.of(Namespace), self.informers.of(ConfigMap, self.home)
        self.informers.add_handler(self)

    def put(self, item: KubeObject) -> None:
        self.queue.add(item.namespace or item.name)

    remove = put

    async def run(self) -> None:
        async with self.informers:
            await self.informers.wait_for_sync("greetings")
            while True:
                name = await self.queue.take()
                try:
                    await self.reconcile(name)
                    self.queue.succeeded(name)
                except kube.REQUEST_FAILURES as problem:
                    logging.warning("%s: %s; again in %.3f s", name, problem, self.queue.failed(name))
                finally:
                    self.queue.done(name)

    async def reconcile(self, name: str) -> None:
        namespace, known = self.namespaces.lister.get(name), self.maps.lister.get("greeting", name)
        text = None if namespace is None else namespace.labels.get("greeting")
        path = self.home.path(name, "greeting")
        if text is None and known is not None:
            await self.client.request("DELETE", path)
        elif text is not None and (known is None or known.data != {"text": text}):
            metadata = {"name": "greeting", "labels": {"managed-by": "greetings"}}
            wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}
            body, manager = msgspec.json.encode(wanted), {"fieldManager": "greetings"}
            await self.client.request("PATCH", path, params=manager, body=body, content_type=kube.APPLY_PATCH)


async def main() -> None:
    async with kube.RestClient(kube.load_target(Path(sys.argv[1]) if sys.argv[1:] else None)) as client:
        await Greetings(client).run()


if __name__ == "__main__":
    asyncio.run(main())
