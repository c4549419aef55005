"""The server's side of TLS, which follows its files: who connects after a certificate or a CA changed gets the new one.

Connections that stand are left alone. A pair that cannot be loaded (half written, say) leaves the last good one in use.
Next: `names`, for what flags may say; `ca_bundle`.
"""

from __future__ import annotations

import logging
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kubesched.live.serving.errors import ServingError
from kubesched.live.serving.settings import PAIR_NAME, ServingSettings
from kubesched.live.serving.tls import names
from kubesched.live.serving.tls.ca_bundle import CaBundle
from kubesched.live.serving.tls.file_watch import FileWatch
from kubesched.live.serving.tls.self_signed import PemPair, self_signed, write_pair

_log = logging.getLogger("kubesched.serving")


class RenewingContext(ssl.SSLContext):
    """Stands in front of the context that is in use now. asyncio asks it once per connection (`wrap_bio`)."""

    def __new__(cls, maker: ContextMaker) -> RenewingContext:  # noqa: ARG004 - `__init__` takes it
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, maker: ContextMaker) -> None:
        self._maker = maker

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        return self._maker.current().wrap_bio(*args, **kwargs)


class ContextMaker:
    def __init__(self, settings: ServingSettings, client_cas: Sequence[CaBundle] = ()) -> None:
        """Raises `ServingError` if certificate, key or flags cannot be used."""
        self._min_version = names.min_version(settings.tls_min_version)
        self._ciphers = names.openssl_ciphers(settings.tls_cipher_suites)
        self._client_cas = tuple(client_cas)
        self._pair = _pair_files(settings)
        self._generated = self_signed(settings.bind_address) if self._pair is None else None
        self._watch = FileWatch(self._pair or ())
        self._cas_version = self._version_of_cas()
        try:
            self._context = self._make()
        except (OSError, ssl.SSLError) as problem:
            where = " and ".join(map(str, self._pair or ("the generated certificate",)))
            raise ServingError(f"--tls-cert-file, --tls-private-key-file: {where}: {problem}") from None

    def current(self) -> ssl.SSLContext:
        """The context for a connection that is opened now."""
        for bundle in self._client_cas:
            bundle.refresh()
        cas_version = self._version_of_cas()
        if self._watch.has_changed() or cas_version != self._cas_version:
            self._cas_version = cas_version
            self._renew()
        return self._context

    def _renew(self) -> None:
        try:
            self._context = self._make()
        except (OSError, ssl.SSLError) as problem:
            _log.error("Loading the serving certificate failed", extra={"fields": {"err": problem}})
        else:
            _log.info("Loaded a new serving certificate or client CA", extra={"fields": {}, "v": 2})

    def _version_of_cas(self) -> tuple[int, ...]:
        return tuple(bundle.version for bundle in self._client_cas)

    def _make(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._min_version
        context.set_alpn_protocols(["http/1.1"])
        context.options |= ssl.OP_NO_TICKET  # who resumes a connection brings no chain to look at
        context.num_tickets = 0
        if self._ciphers:
            context.set_ciphers(self._ciphers)
        if self._pair is not None:
            context.load_cert_chain(*self._pair)
        elif self._generated is not None:
            _load_from_memory(context, self._generated)
        pem = "\n".join(bundle.pem for bundle in self._client_cas if bundle)
        if pem:  # without a CA to check them by, certificates are not asked for
            context.load_verify_locations(cadata=pem)
            context.verify_mode = ssl.CERT_OPTIONAL
            context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        return context


def _pair_files(settings: ServingSettings) -> tuple[Path, Path] | None:
    """Certificate and key; made under `cert_dir` if they are not there yet. None if they are only in memory."""
    certificate, key = settings.tls_cert_file, settings.tls_private_key_file
    if bool(certificate) != bool(key):
        raise ServingError("--tls-cert-file and --tls-private-key-file must be given together")
    if certificate:
        return Path(certificate), Path(key)
    if not settings.cert_dir:
        return None
    directory = Path(settings.cert_dir)
    pair = directory / f"{PAIR_NAME}.crt", directory / f"{PAIR_NAME}.key"
    if not all(file.exists() for file in pair):
        try:
            write_pair(self_signed(settings.bind_address), *pair)
        except OSError as problem:
            raise ServingError(f"--cert-dir: {problem}") from None
        _log.info("Generated self-signed cert", extra={"fields": {"cert": pair[0], "key": pair[1]}})
    return pair


def _load_from_memory(context: ssl.SSLContext, pair: PemPair) -> None:
    """OpenSSL, as Python has it, reads keys from files only: one that nobody else can open, for a moment."""
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory, "cert.pem"), Path(directory, "key.pem")
        write_pair(pair, *files)
        context.load_cert_chain(*files)
