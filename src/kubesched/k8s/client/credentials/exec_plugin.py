"""Credentials from an outside program (`exec` in a kubeconfig): run when needed, and again when they expire or fail.

The program gets no standard input, since a scheduler cannot ask anybody. Several requests that need a login at the
same time share one run.

Next: `exec_credential`, the data; `from_user`, which makes these.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Callable
from typing import Any

from kubesched.k8s.client.credentials.exec_credential import PluginAnswerError, PluginLogin, exec_info, read_login
from kubesched.k8s.client.credentials.static import bearer
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig_file import EntryPlace, ExecEntry
from kubesched.k8s.client.target import Headers
from kubesched.k8s.client.tls import TlsMaterialError

RUN_TIMEOUT_S = 60.0
_MAX_STDERR = 500

ShowCertificate = Callable[[bytes, bytes], None]


class ExecPluginCredentials:
    """`show_certificate` puts a certificate and key (PEM) into the TLS context of the server."""

    def __init__(
        self,
        entry: ExecEntry,
        place: EntryPlace,
        *,
        show_certificate: ShowCertificate,
        cluster: dict[str, Any] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._entry = entry
        self._place = place
        self._show_certificate = show_certificate
        self._info = exec_info(entry.api_version, cluster)
        self._now = now
        self._login: PluginLogin | None = None
        self._headers: Headers = ()
        self._lock = asyncio.Lock()
        self.connection_epoch = 0

    async def headers(self) -> Headers:
        if not self._is_valid():
            async with self._lock:
                if not self._is_valid():
                    await self._log_in()
        return self._headers

    async def renew(self, used: Headers, epoch: int) -> bool:
        async with self._lock:
            if self._headers is used and self.connection_epoch == epoch:
                await self._log_in()
        return True

    def advice(self) -> str:
        return f"the credential plugin {self._entry.command!r} gave a login that the server refuses: log in to it anew"

    async def close(self) -> None:
        return None

    def _is_valid(self) -> bool:
        login = self._login
        return login is not None and (login.expires_at_s is None or self._now() < login.expires_at_s)

    async def _log_in(self) -> None:
        output = await self._run()
        try:
            login = read_login(output, self._entry.api_version)
            before = self._login or PluginLogin()
            if login.certificate and (login.certificate, login.key) != (before.certificate, before.key):
                self._show_certificate(login.certificate, login.key)
                self.connection_epoch += 1
        except (PluginAnswerError, TlsMaterialError) as failure:
            raise self._error(str(failure)) from None
        self._login = login
        self._headers = bearer(login.token) if login.token else ()

    async def _run(self) -> bytes:
        command = self._command()
        environment = os.environ | {pair.name: pair.value for pair in self._entry.env}
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *self._entry.args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment | {"KUBERNETES_EXEC_INFO": self._info},
            )
        except OSError as failure:
            raise self._error(f"cannot be run: {failure.strerror}") from None
        try:
            async with asyncio.timeout(RUN_TIMEOUT_S):
                output, complaints = await process.communicate()
        except TimeoutError:
            raise self._error(f"did not finish within {RUN_TIMEOUT_S:g} s") from None
        finally:
            await _end(process)
        if process.returncode != 0:
            said = complaints.decode("utf-8", "replace").strip()[-_MAX_STDERR:]
            raise self._error(f"failed with exit code {process.returncode}" + (f": {said}" if said else ""))
        return output

    def _command(self) -> str:
        command = self._entry.command
        if os.sep in command:
            path = self._place.path(command)
            if not path.exists():
                raise self._error(f"{path} does not exist")
            return str(path)
        found = shutil.which(command)
        if found is None:
            raise self._error("not found in PATH")
        return found

    def _error(self, why: str) -> ClientConfigError:
        hint = f"\n{self._entry.install_hint.strip()}" if self._entry.install_hint else ""
        return self._place.error("exec", f"credential plugin {self._entry.command!r}: {why}{hint}")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
