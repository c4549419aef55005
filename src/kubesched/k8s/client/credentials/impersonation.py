"""Acting as somebody else: the Impersonate headers put beside whatever logs us in.

Next: `from_user`, which wraps credentials in it when a kubeconfig's user has `as`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from kubesched.k8s.client.target import Credentials, Headers


class Impersonating:
    """Headers of `inner` followed by the impersonation's own."""

    def __init__(self, inner: Credentials, extra: Headers) -> None:
        self._inner = inner
        self._extra = extra
        self._login: Headers = ()
        self._both: Headers = extra

    @property
    def connection_epoch(self) -> int:
        return self._inner.connection_epoch

    async def headers(self) -> Headers:
        login = await self._inner.headers()
        if login is not self._login:
            self._login = login
            self._both = (*login, *self._extra)
        return self._both

    async def renew(self, used: Headers, epoch: int) -> bool:
        if used is not self._both or epoch != self.connection_epoch:
            return True
        return await self._inner.renew(self._login, epoch)

    def advice(self) -> str:
        return self._inner.advice()

    async def close(self) -> None:
        await self._inner.close()


def impersonation_headers(user: str, uid: str, groups: Sequence[str], extra: Mapping[str, Sequence[str]]) -> Headers:
    headers = [("Impersonate-User", user)]
    if uid:
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", group) for group in groups]
    # A key of `extra` becomes part of a header's name: what a name cannot hold is percent-encoded.
    headers += [
        (f"Impersonate-Extra-{quote(key.lower(), safe='!#$&*+^`|~')}", value)
        for key, values in extra.items()
        for value in values
    ]
    return tuple(headers)
