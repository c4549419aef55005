"""Keys, certificates and tokens: kept, private, and valid only for whom they were made."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from apiserver_serving import TestClient, running, serve

from kubesched.playground.apiserver.http import identity
from kubesched.playground.apiserver.server import ApiServer, ServerSettings


def test_an_identity_is_kept_and_private(tmp_path: Path) -> None:
    first = identity.load_or_create(tmp_path, "127.0.0.1")
    assert identity.load_or_create(tmp_path, "127.0.0.1") == first
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert len(first.token) >= 32


def test_nothing_of_the_cluster_can_be_read_by_others_whatever_the_directory_allows(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)

    async def modes() -> dict[str, int]:
        async with running(folder) as client:
            client.server.write_kubeconfig(folder / "kubeconfig")
            await client.ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
            return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}

    found = asyncio.run(modes())
    told_to_all = {"cluster", "format", "lock"}  # a number, a version, and nothing
    assert {name for name, mode in found.items() if mode != 0o600} <= told_to_all
    assert {"admin.token", "server.key", "tokens.key", "objects.sqlite", "kubeconfig"} <= found.keys()


def test_two_servers_do_not_share_their_identity() -> None:
    assert identity.create("127.0.0.1").token != identity.create("127.0.0.1").token


def test_the_kubeconfig_names_this_server_and_is_private(tmp_path: Path) -> None:
    server = ApiServer(ServerSettings(port=1234))
    config = tmp_path / "config"
    server.write_kubeconfig(config)
    assert config.stat().st_mode & 0o777 == 0o600
    assert server.token in config.read_text()
    assert "https://127.0.0.1:1234" in config.read_text()


_ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def test_a_token_of_a_service_account_dies_with_it() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", _ACCOUNTS, {"metadata": {"name": "robot"}})
        made = await client.ask("POST", f"{_ACCOUNTS}/robot/token", {"spec": {}})
        bearer = f"Bearer {made.body['status']['token']}"
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        who = await client.ask("POST", path, {}, Authorization=bearer)
        assert who.body["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
        assert (await client.ask("GET", "/api/v1/nodes", Authorization=bearer)).status == 403
        assert (await client.ask("GET", "/api/v1/nodes", Authorization=bearer[:-4] + "AAAA")).status == 401
        await client.ask("DELETE", f"{_ACCOUNTS}/robot")
        assert (await client.ask("GET", "/version", Authorization=bearer)).status == 401

    serve(body)


@pytest.mark.parametrize("seconds", [pytest.param(1, id="too short"), pytest.param(1 << 40, id="too long")])
def test_a_token_for_an_odd_time_is_refused(seconds: int) -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", _ACCOUNTS, {"metadata": {"name": "robot"}})
        asked = {"spec": {"expirationSeconds": seconds}}
        assert (await client.ask("POST", f"{_ACCOUNTS}/robot/token", asked)).status == 422

    serve(body)


def test_a_server_finds_its_objects_and_token_again(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as client:
            token = client.server.token
            made = await client.ask("POST", _ACCOUNTS, {"metadata": {"name": "robot"}})
        async with running(tmp_path) as client:
            assert client.server.token == token
            found = await client.ask("GET", f"{_ACCOUNTS}/robot")
            assert found.body == made.body
            version = made.body["metadata"]["resourceVersion"]
            await client.ask("POST", _ACCOUNTS, {"metadata": {"name": "other"}})
            (event,) = await client.events(f"{_ACCOUNTS}?watch=1&resourceVersion={version}", 1)
            assert event["object"]["metadata"]["name"] == "other"

    asyncio.run(body())
