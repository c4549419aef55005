"""The page without its key, and under names that are not its own: nothing of the cluster is told."""

from __future__ import annotations

import asyncio

import pytest
from shown_cluster import ShownCluster, client_of, node, pod, serving
from yarl import URL

PATHS = (
    "/api/state",
    "/api/state/",
    "/api/state?key=x",
    "/api//state",
    "/api/./state",
    "/api/../api/state",
    "/API/state",
    "/%61pi/state",
    "/api%2fstate",
    "/api/state%00",
    "/static/../api/state",
    "/static/%2e%2e/api/state",
    "/api/stream",
    "/api/explain/shop/secret-pod",
    "/api/explain/shop/..%2fsecret-pod",
    "/api/timeline/shop/secret-pod",
    "/api/login",
    "//api/state",
)
HOSTS = (
    "evil.example",
    "evil.example:80",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.2",
    "0.0.0.0",
    "[::1]",
    "127.0.0.1@evil.example",
    "localhost:80:80",
    "[",
)


def _cluster() -> ShownCluster:
    cluster = ShownCluster()
    cluster.put(node("secret-node"), pod("secret-pod"))
    return cluster


async def _asked(path: str, *, has_key: bool, **headers: str) -> tuple[int, str]:
    async with serving(_cluster()) as page, client_of(page, has_key=has_key) as client:
        url = URL(page.address + path, encoded=True)
        async with client.get(url, headers=headers) as answer:
            return answer.status, await answer.text()


@pytest.mark.parametrize("path", PATHS)
def test_without_its_key_no_path_tells_of_the_cluster(path: str) -> None:
    status, body = asyncio.run(_asked(path, has_key=False))
    assert status in (400, 401, 403, 404, 405), body
    assert "secret-" not in body


@pytest.mark.parametrize("host", HOSTS)
def test_with_its_key_no_strange_name_tells_of_the_cluster(host: str) -> None:
    status, body = asyncio.run(_asked("/api/state", has_key=True, Host=host))
    assert status in (400, 421), body
    assert "secret-" not in body


def test_as_many_as_were_tried_by_hand() -> None:
    assert (len(PATHS), len(HOSTS)) == (18, 10)
