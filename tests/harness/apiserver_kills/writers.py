"""Writers that create, change, bind and delete as fast as they are answered, until the server is gone.

Each has names of its own, so that for every object the order of writes is known. What is acknowledged goes to the
`Ledger`. Next: `followers.py` watches what they write.
"""

from __future__ import annotations

import random
from typing import Any

from harness.apiserver_kills.ledger import Key, Ledger
from harness.apiserver_kills.talking import ServerGoneError, TalkingClient, collection

CONFIG_MAPS, PODS = "configmaps", "pods"
RESOURCES = (CONFIG_MAPS, PODS)
_NAMES_EACH = 6


class Writer:
    """One client; ``number`` tells it from the others."""

    def __init__(self, number: int, ledger: Ledger, dice: random.Random) -> None:
        self._number = number
        self._ledger = ledger
        self._dice = dice
        self._count = 0

    async def write_until_gone(self, api: TalkingClient) -> None:
        try:
            while True:
                resource = self._dice.choice(RESOURCES)
                key = (resource, f"w{self._number}-{self._dice.randrange(_NAMES_EACH)}")
                await (self._change_map(api, key) if resource == CONFIG_MAPS else self._change_pod(api, key))
        except ServerGoneError:
            return

    def _next_content(self) -> str:
        self._count += 1
        return f"{self._number}.{self._count}.{self._dice.getrandbits(32):x}"

    async def _change_map(self, api: TalkingClient, key: Key) -> None:
        known, path = self._ledger.known(key), collection(CONFIG_MAPS)
        content = self._next_content()
        if not known.revision:
            await self._send(api, key, "create", content, "POST", path, _config_map(key, content))
            return
        verb = self._dice.choice(("update", "update", "patch", "patch", "delete"))
        if verb == "update":
            body = _config_map(key, content)
            body["metadata"]["resourceVersion"] = str(known.revision)
            await self._send(api, key, verb, content, "PUT", f"{path}/{key[1]}", body)
        elif verb == "patch":
            await self._send(api, key, verb, content, "PATCH", f"{path}/{key[1]}", {"data": {"v": content}})
        else:
            await self._send(api, key, verb, "", "DELETE", f"{path}/{key[1]}", {})

    async def _change_pod(self, api: TalkingClient, key: Key) -> None:
        known, path = self._ledger.known(key), f"{collection(PODS)}/{key[1]}"
        if not known.revision:
            await self._send(api, key, "create", "", "POST", collection(PODS), _pod(key))
        elif not known.content:
            node = self._next_content()
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": key[1]}}
            await self._send(api, key, "bind", node, "POST", f"{path}/binding", body | {"target": {"name": node}})
        else:
            await self._send(api, key, "delete", "", "DELETE", path, {"gracePeriodSeconds": 0})

    async def _send(
        self, api: TalkingClient, key: Key, verb: str, content: str, method: str, path: str, body: Any
    ) -> None:
        self._ledger.begin(key, verb, content)
        media_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = await api.ask(method, path, body, media_type)
        tells_version = verb in ("create", "update", "patch")
        self._ledger.acknowledge(key, int(answer["metadata"]["resourceVersion"]) if tells_version else None)


def _config_map(key: Key, content: str) -> dict[str, Any]:
    return {"metadata": {"name": key[1]}, "data": {"v": content, "filling": "x" * 300}}


def _pod(key: Key) -> dict[str, Any]:
    containers = [{"name": "c", "image": "registry.k8s.io/pause:3.9"}]
    return {"metadata": {"name": key[1]}, "spec": {"containers": containers, "terminationGracePeriodSeconds": 0}}


async def write_marker(api: TalkingClient, resource: str, text: str) -> int:
    """A write whose version everybody who watches the resource must come to see."""
    path = f"{collection(resource)}/marker"
    body = {"metadata": {"annotations": {"round": text}}}
    answer = await api.ask("PATCH", path, body, "application/merge-patch+json")
    return int(answer["metadata"]["resourceVersion"])


async def create_markers(api: TalkingClient) -> None:
    await api.ask("POST", collection(CONFIG_MAPS), _config_map((CONFIG_MAPS, "marker"), ""))
    await api.ask("POST", collection(PODS), _pod((PODS, "marker")))


def content_of(resource: str, item: dict[str, Any]) -> str:
    """What the ledger keeps of an object."""
    if resource == CONFIG_MAPS:
        return str(item.get("data", {}).get("v", ""))
    return str(item["spec"].get("nodeName", ""))
