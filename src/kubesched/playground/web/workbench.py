"""What the playground's page may do beyond looking: change objects, try pods, and load scenarios.

A scenario is a file of `scenarios/`, whose first comment is its title and the rest of it what to look for. Loading one
again brings its objects back to what the file says.

Next: `objects`, which talks to the API server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model.core import Pod
from kubesched.playground.controllers.kinds import DiscoveredKinds
from kubesched.playground.manifests import InvalidManifestError, put_in, read_documents
from kubesched.playground.web.objects import ClusterObjects
from kubesched.playground.web.sources import JsonObject, ObjectRef, RefusedError, ShownScenario

_SCENARIOS = ("gpu-shortage", "zone-spread", "preemption", "volumes", "gang")


class PlaygroundBench:
    """Implements `Workbench`."""

    def __init__(
        self, client: RestClient, kinds: DiscoveredKinds, explain: Callable[[Pod], Awaitable[JsonObject]]
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._objects = ClusterObjects(client, kinds)
        self._explain = explain

    async def read(self, ref: ObjectRef) -> str:
        return str(await _told(self._objects.read(ref)))

    async def write(self, text: str, *, is_dry_run: bool) -> list[JsonObject]:
        found: list[JsonObject] = await _told(self._objects.write(text, is_dry_run=is_dry_run))
        return found

    async def delete(self, ref: ObjectRef) -> None:
        await _told(self._objects.delete(ref))

    async def cordon(self, node: str, *, is_cordoned: bool) -> None:
        await _told(self._objects.patch(ObjectRef("v1", "Node", "", node), {"spec": {"unschedulable": is_cordoned}}))

    async def what_if(self, text: str) -> JsonObject:
        """Where the pod of this YAML would go; it is not created."""
        body = await _told(self._objects.as_created(text))
        return await self._explain(msgspec.convert(body, Pod))

    async def load(self, scenario: str) -> None:
        documents = read_documents(scenario_text(scenario).encode(), scenario)
        await _told(put_in(self._client, self._kinds, documents, "default"))

    def scenarios(self) -> list[ShownScenario]:
        return [_scenario(name) for name in _SCENARIOS]


async def _told(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except InvalidManifestError as problem:
        raise RefusedError(str(problem)) from None


def scenario_text(name: str) -> str:
    return (resources.files("kubesched.playground") / "scenarios" / f"{name}.yaml").read_text()


@cache
def _scenario(name: str) -> ShownScenario:
    lines = []
    for line in scenario_text(name).splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return ShownScenario(name, lines[0], " ".join(lines[1:]))
