"""A token in a file that somebody else keeps fresh, as kubelets do for service accounts.

The file is read again when what we have is older than a minute, and at once after a 401. When it cannot be read or is
empty, the last token stays in use, as long as the server takes it.

Next: `from_user` and `kubesched.k8s.client.in_cluster`, which make these.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from kubesched.k8s.client.credentials.static import bearer
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.target import Headers

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
