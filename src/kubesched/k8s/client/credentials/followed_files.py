"""Certificates kept in files that somebody else renews: loaded anew when the files change.

For a client certificate (kubelets and certificate managers renew it) and for the authority that signs the server's
(clusters replace theirs now and then). We look once a minute and after a 401. When new files cannot be used, for
example because only one of two was written yet, what was loaded before stays.

Next: `kubesched.k8s.client.tls`, which loads certificates; `from_user`, which makes these.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.target import Credentials, Headers
from kubesched.k8s.client.tls import TlsMaterialError

LOOK_AFTER_S = 60.0
_log = logging.getLogger("kubesched.k8s.client.credentials")
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
