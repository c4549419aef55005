"""Calls to extenders: plain HTTP POSTs, each extender with the TLS settings of its own.

Next: `kubesched.scheduler.engine.extender` for what is said.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from kubesched.framework.effects import CallExtender, Failed
from kubesched.k8s.client.errors import ClientConfigError, NotSent
from kubesched.k8s.client.tls import TlsMaterialError, make_tls_context, show_certificate
from kubesched.scheduler.config import ExtenderConfiguration, ExtenderTLSConfig
from kubesched.scheduler.config.configuration import hide_password

if TYPE_CHECKING:
    import aiohttp


class ExtenderCalls:
    """`close` it at the end. Raises `NotSent` as the gate does."""

    def __init__(self, extenders: Sequence[ExtenderConfiguration], left_s: Callable[[], float] = lambda: inf) -> None:
        """`left_s` says for how many more seconds we may write: a call that binds is a write."""
        self._left_s = left_s
        self._bind_verbs = [extender.bind_verb for extender in extenders]
        self._contexts = [_tls_context(number, extender) for number, extender in enumerate(extenders)]
        self._names = [(extender.tls_config or ExtenderTLSConfig()).server_name or None for extender in extenders]
        self._session: aiohttp.ClientSession | None = None

    async def call(self, action: CallExtender) -> bytes | Failed:
        import aiohttp  # takes a tenth of a second: only who has extenders waits for it

        limit_s = action.timeout_s
        if action.verb == self._bind_verbs[action.extender] and (limit_s := min(limit_s, self._left_s())) <= 0:
            raise NotSent
        if self._session is None:
            self._session = aiohttp.ClientSession()
        context, shown = self._contexts[action.extender], hide_password(action.url)
        try:
            async with asyncio.timeout(limit_s):
                return await self._post(self._session, action, context)
        except TimeoutError:
            return Failed(f'Post "{shown}": context deadline exceeded')
        except (aiohttp.ClientError, OSError) as problem:
            return Failed(f'Post "{shown}": {problem}')

    async def _post(
        self, session: aiohttp.ClientSession, action: CallExtender, context: ssl.SSLContext | None
    ) -> bytes | Failed:
        headers = {"Content-Type": "application/json"}
        async with session.post(
            action.url,
            data=action.body,
            headers=headers,
            ssl=True if context is None else context,
            server_hostname=self._names[action.extender],
        ) as answer:
            body = await answer.read()
            if answer.status == 200:
                return body
            return Failed(
                f"failed {action.verb} with extender at URL {hide_password(action.url)}, code {answer.status}"
            )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _tls_context(number: int, extender: ExtenderConfiguration) -> ssl.SSLContext | None:
    """None: as the system has it. Raises `ClientConfigError` that names the field.

    As in kube-scheduler, HTTPS without authorities to trust means to trust anybody.
    """
    tls = extender.tls_config or ExtenderTLSConfig()
    if extender.tls_config is None and not extender.enable_https:
        return None
    where = f"extenders[{number}].tlsConfig"
    authorities = _material(tls.ca_data, tls.ca_file, where, "caFile")
    certificate = _material(tls.cert_data, tls.cert_file, where, "certFile")
    key = _material(tls.key_data, tls.key_file, where, "keyFile")
    try:
        context = make_tls_context(authorities=authorities, verify=not extender.trusts_anybody)
        if certificate is not None and key is not None:
            show_certificate(context, certificate, key)
    except TlsMaterialError as problem:
        raise ClientConfigError(f"{where}: {problem}") from None
    return context


def _material(data: bytes, file: str, where: str, field: str) -> bytes | None:
    if data:
        return data
    if not file:
        return None
    try:
        return Path(file).read_bytes()
    except OSError as problem:
        raise ClientConfigError(f"{where}.{field}: {file}: {problem.strerror}") from None
