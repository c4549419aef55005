"""Credentials from an outside program (`exec` in a kubeconfig): run when needed, and again when they expire or fail.

The program gets an `ExecCredential` (client.authentication.k8s.io) and answers with one. It gets no standard input,
since a scheduler cannot ask anybody. Several requests that need a login at the same time share one run.

Next: `from_user`, which makes these.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from kubesched.k8s.client.credentials.stored import bearer
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig_file import ClusterEntry, EntryPlace, ExecEntry, Placed
from kubesched.k8s.client.target import Headers, TlsMaterialError
from kubesched.k8s.errors import KubeschedError

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
_CONFIG_EXTENSION = f"{GROUP}/exec"


class _LoginStatus(msgspec.Struct, rename="camel"):
    expiration_timestamp: datetime | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _PluginAnswer(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _LoginStatus | None = None


@dataclass(frozen=True)
class PluginLogin:
    """What a plugin gave: a token, a certificate with key (PEM), or both; and until when."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires_at_s: float | None = None


class PluginAnswerError(KubeschedError, ValueError):
    """A plugin's answer cannot be used; the text holds nothing of the answer but names of fields."""


def exec_info(api_version: str, cluster: dict[str, Any] | None) -> str:
    """The value of KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": False}
    if cluster is not None:
        spec["cluster"] = cluster
    info = {"kind": "ExecCredential", "apiVersion": api_version, "spec": spec}
    return msgspec.json.encode(info).decode()


def cluster_info(server: str, proxy: str, cluster: Placed[ClusterEntry], authorities: bytes | None) -> dict[str, Any]:
    """What a plugin with `provideClusterInfo` learns of the cluster."""
    entry = cluster.entry
    fields: dict[str, Any] = {
        "server": server,
        "tls-server-name": entry.tls_server_name,
        "insecure-skip-tls-verify": entry.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authorities or b"").decode("ascii"),
        "proxy-url": proxy,
        "disable-compression": entry.disable_compression,
    }
    known = {name: value for name, value in fields.items() if value}
    for extension in entry.extensions:
        if extension.get("name") == _CONFIG_EXTENSION:
            known["config"] = extension.get("extension")
    return known


def read_login(output: bytes, api_version: str) -> PluginLogin:
    """The login in a plugin's output."""
    try:
        answer = msgspec.json.decode(output, type=_PluginAnswer)
    except msgspec.ValidationError as failure:
        where = str(failure).partition("`$")[2].strip("`.")
        raise PluginAnswerError(f"its output has a wrong type in {where or 'the whole'}") from None
    except msgspec.DecodeError:
        raise PluginAnswerError("its output is not JSON") from None
    if answer.kind != "ExecCredential":
        raise PluginAnswerError("its output is not an ExecCredential")
    if answer.api_version != api_version:
        raise PluginAnswerError(f"it is configured for apiVersion {api_version} and answers in another version")
    if answer.status is None:
        raise PluginAnswerError("it did not return a status field")
    return _checked(answer.status)


def _checked(status: _LoginStatus) -> PluginLogin:
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        raise PluginAnswerError("it returned only one of clientCertificateData and clientKeyData")
    if not status.token and not certificate:
        raise PluginAnswerError("it did not return a token or a certificate with key")
    expires = status.expiration_timestamp
    if expires is not None and expires.tzinfo is None:
        raise PluginAnswerError("its status.expirationTimestamp has no time zone")
    return PluginLogin(
        token=status.token.strip(),
        certificate=certificate.encode(),
        key=key.encode(),
        expires_at_s=expires.timestamp() if expires is not None else None,
    )


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
        return f"the credential plugin {self._entry.command!r} gave a login that the server refuses: log in to it again"

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
