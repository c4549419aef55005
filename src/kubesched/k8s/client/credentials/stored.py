"""Credentials that are stored: written in the kubeconfig, or in files that are renewed from outside.

A token or a user name with password in the kubeconfig never changes. A token in a file, as kubelets keep one for
service accounts, is read again when what we have is older than a minute, and at once after a 401. When it cannot be
read or is empty, the last token stays in use, as long as the server takes it.

The same holds for certificates: a client certificate (kubelets and certificate managers renew it) and the authority
that signs the server's (clusters replace theirs now and then). We look once a minute and after a 401. When new files
cannot be used, for example because only one of two was written yet, what was loaded before stays.

Next: `kubesched.k8s.client.target`, which loads certificates; `from_user` and `kubesched.k8s.client.kubeconfig`, which
make these.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable
from pathlib import Path

from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.target import Credentials, Headers, TlsMaterialError


class StaticCredentials:
    """The same headers forever; after a 401 only a person can help."""

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


REREAD_AFTER_S = 60.0
_log = logging.getLogger("kubesched.k8s.client.credentials")


class TokenFileCredentials:
    """`fallback` is the token to use while the file cannot be read."""

    connection_epoch = 0

    def __init__(self, path: Path, *, fallback: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._token = fallback
        self._headers: Headers = bearer(fallback) if fallback else ()
        self._read_again_at_s = float("-inf")

    async def headers(self) -> Headers:
        if self._clock() >= self._read_again_at_s:
            self._read()
        return self._headers

    async def renew(self, used: Headers, epoch: int) -> bool:
        if self._headers is used:
            self._read()
        return self._headers is not used

    def advice(self) -> str:
        return f"check that the token in {self._path} is of this cluster and is being renewed"

    async def close(self) -> None:
        return None

    def _read(self) -> None:
        self._read_again_at_s = self._clock() + REREAD_AFTER_S
        try:
            token = self._path.read_text("utf-8").strip()
            why = "" if token else "the file is empty"
        except (OSError, UnicodeDecodeError) as failure:
            token, why = "", getattr(failure, "strerror", None) or "it is not text"
        if not token and not self._headers:
            raise ClientConfigError(f"{self._path}: cannot read the token: {why}")
        if not token:
            _log.warning("Keeping the last token", extra={"fields": {"file": str(self._path), "err": why}})
        elif token != self._token:
            self._token = token
            self._headers = bearer(token)


LOOK_AFTER_S = 60.0

_Stamp = tuple[tuple[int, int], ...]


class FollowedFiles:
    """Credentials `inner`, and files to follow beside them.

    `load` reads the files into the TLS context; it may raise `ClientConfigError` or `TlsMaterialError`. `advice` is for
    a 401, None when the files have nothing to do with who we are: then a change needs no new connections either.
    """

    def __init__(
        self,
        inner: Credentials,
        files: tuple[Path, ...],
        load: Callable[[], None],
        *,
        advice: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._files = files
        self._load = load
        self._advice = advice
        self._clock = clock
        self._stamp = self._stamp_now()
        self._look_at_s = clock() + LOOK_AFTER_S
        self._n_changes = 0

    @property
    def connection_epoch(self) -> int:
        return self._n_changes + self._inner.connection_epoch

    async def headers(self) -> Headers:
        if self._clock() >= self._look_at_s:
            self._look()
        return await self._inner.headers()

    async def renew(self, used: Headers, epoch: int) -> bool:
        if epoch != self.connection_epoch:
            return True
        before = self._n_changes
        self._look()
        return await self._inner.renew(used, self._inner.connection_epoch) or self._n_changes != before

    def advice(self) -> str:
        return self._advice or self._inner.advice()

    async def close(self) -> None:
        await self._inner.close()

    def _look(self) -> None:
        """Loads files that changed."""
        self._look_at_s = self._clock() + LOOK_AFTER_S
        stamp = self._stamp_now()
        if stamp == self._stamp:
            return
        try:
            self._load()
        except (ClientConfigError, TlsMaterialError) as failure:
            fields = {"files": [str(path) for path in self._files], "err": str(failure)}
            _log.warning("Keeping the certificates that were loaded before", extra={"fields": fields})
            return
        self._stamp = stamp
        if self._advice is not None:
            self._n_changes += 1

    def _stamp_now(self) -> _Stamp:
        stamps = []
        for path in self._files:
            try:
                status = path.stat()
            except OSError:
                stamps.append((0, 0))
            else:
                stamps.append((status.st_mtime_ns, status.st_ino))
        return tuple(stamps)
