"""Credentials that never change: a token or a user name with password, written in the kubeconfig.

Next: `from_user`, which makes them.
"""

from __future__ import annotations

import base64

from kubesched.k8s.client.target import Headers


class StaticCredentials:
    """The same headers for ever; after a 401 only a person can help."""

    connection_epoch = 0

    def __init__(self, headers: Headers, advice: str) -> None:
        self._headers = headers
        self._advice = advice

    async def headers(self) -> Headers:
        return self._headers

    async def renew(self, used: Headers, epoch: int) -> bool:
        return False

    def advice(self) -> str:
        return self._advice

    async def close(self) -> None:
        return None


def bearer(token: str) -> Headers:
    return (("Authorization", f"Bearer {token}"),)


def basic(username: str, password: str) -> Headers:
    encoded = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
    return (("Authorization", f"Basic {encoded}"),)
