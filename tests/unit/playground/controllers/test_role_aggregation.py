"""Cluster roles made of others: `view`, `edit` and `admin` from the start, and what is labelled for them later."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.rest import RestClient
from kubesched.playground.apiserver.server import ApiServer, ServerSettings
from kubesched.playground.controllers.runner import ControllerRunner, all_controllers

_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


async def _rules(client: RestClient, name: str) -> list[dict[str, Any]]:
    return msgspec.json.decode(await client.request("GET", f"{_ROLES}/{name}"))["rules"] or []


async def _until_granted(client: RestClient, name: str, resource: str, granted: bool = True) -> None:
    while any(resource in rule.get("resources", []) for rule in await _rules(client, name)) is not granted:
        await asyncio.sleep(0.02)


def test_rules_are_joined_and_follow_changes(tmp_path: Path) -> None:
    async def run() -> None:
        server = ApiServer(ServerSettings(tls=False))
        await server.start()
        config = tmp_path / "config"
        server.write_kubeconfig(config)
        client = RestClient(load_target(config, environ={}), qps=0)
        runner = ControllerRunner(client, partial(all_controllers, root_ca_pem=""))
        try:
            await runner.start()
            for name, resource in (("view", "pods"), ("edit", "pods/eviction"), ("admin", "rolebindings")):
                await _until_granted(client, name, resource)
            await _until_granted(client, "admin", "pods/log")  # through edit, through view
            assert not any("secrets" in rule["resources"] for rule in await _rules(client, "view"))
            label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
            rules = [{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}]
            body = {"metadata": {"name": "widgets", "labels": label}, "rules": rules}
            await client.request("POST", _ROLES, body=msgspec.json.encode(body))
            await _until_granted(client, "admin", "widgets")
            await client.request("DELETE", f"{_ROLES}/widgets")
            await _until_granted(client, "admin", "widgets", granted=False)
        finally:
            await runner.stop()
            await client.close()
            await server.stop()

    asyncio.run(asyncio.wait_for(run(), 60))
