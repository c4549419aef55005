"""The embedded API server with controllers on it, for the length of a test: both halves of what a cluster does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from controlled_server import ROOT_CA

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.resources import NEXT_POD_GROUPS
from kubesched.k8s.client.rest import RestClient
from kubesched.playground.apiserver.kinds.registry import NEXT, TODAY
from kubesched.playground.apiserver.server import ApiServer, ServerSettings
from kubesched.playground.controllers.kinds import Homes, home_of
from kubesched.playground.controllers.runner import ControllerRunner, MakeControllers, all_controllers

DEADLINE_S = 20.0
Body = dict[str, Any]


class Cluster:
    """Speaks to the server as its administrator."""

    def __init__(self, client: RestClient) -> None:
        self._client = client

    async def ask(self, method: str, path: str, body: Body | None = None) -> Body:
        content = None if body is None else json.dumps(body).encode()
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        where, _, query = path.partition("?")
        params = dict(parse_qsl(query))
        raw = await self._client.request(method, where, params=params, body=content, content_type=kind)
        answer: Body = json.loads(raw)
        return answer

    async def refusal(self, method: str, path: str, body: Body | None = None) -> str:
        """Why the server does not do it."""
        try:
            await self.ask(method, path, body)
        except ApiError as error:
            return error.message
        raise AssertionError(f"{method} {path} was not refused")

    async def find(self, path: str) -> Body | None:
        try:
            return await self.ask("GET", path)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    async def until(self, path: str, holds: Callable[[Body | None], object]) -> Body | None:
        """The object as soon as something holds of it; of None when it is gone."""
        deadline_s = asyncio.get_running_loop().time() + DEADLINE_S
        while True:
            found = await self.find(path)
            if holds(found):
                return found
            if asyncio.get_running_loop().time() > deadline_s:
                raise AssertionError(f"{path} is still {json.dumps(found)}")
            await asyncio.sleep(0.02)


def on_cluster(
    scenario: Callable[[Cluster], Awaitable[None]],
    tmp_path: Any,
    make: MakeControllers | None = None,
    *,
    is_next: bool = False,
) -> None:
    """With all controllers, or those that `make` makes; with `is_next`, of v1.37."""

    async def run() -> None:
        server = ApiServer(ServerSettings(mounts_tokens=True, version=NEXT if is_next else TODAY))
        await server.start()
        server.write_kubeconfig(tmp_path / "kubeconfig")
        client = RestClient(load_target(tmp_path / "kubeconfig"), qps=0)
        homes = Homes(NEXT_POD_GROUPS.version) if is_next else home_of
        runner = ControllerRunner(client, make or partial(all_controllers, root_ca_pem=ROOT_CA), home_of=homes)
        try:
            await runner.start()
            await scenario(Cluster(client))
        finally:
            await runner.stop()
            await client.close()
            await server.stop()

    asyncio.run(run())
