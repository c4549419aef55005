"""The server's side of TLS, which follows its files: who connects after a certificate or a CA changed gets the new one.

Connections that stand are left alone. A pair that cannot be loaded (half written, say) leaves the last good one in use.
A bundle of CAs that are trusted comes from a file, re-read when it changes, or is set by somebody who looked. Whether
files changed is seen from their status alone, which costs microseconds.

A server that was given no certificate gets one signed by a CA made for it alone, whose key is thrown away. Clients that
want to be sure need a real certificate; this one only keeps readers out.

TLS versions and cipher suites have the names that Go and Kubernetes' flags use. Suites that OpenSSL no longer has by
default (RC4, 3DES) are names without a meaning here, and refused.

Next: `authentication`, which says whose a client's certificate is.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import ssl
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kubesched.k8s.certificates import Authority, key_pem, new_key
from kubesched.live.serving.settings import PAIR_NAME, ServingError, ServingSettings

VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

CIPHER_SUITES = {
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""Of TLS 1.2 and before."""

TLS13_SUITES = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""TLS 1.3 has these always: naming them is allowed, and changes nothing (in Go neither)."""


def min_version(name: str) -> ssl.TLSVersion:
    """The version of `--tls-min-version`; 1.2 if none is named."""
    if not name:
        return ssl.TLSVersion.TLSv1_2
    found = VERSIONS.get(name)
    if found is None:
        raise ServingError(f"--tls-min-version: unknown tls version {name!r}; one of {', '.join(VERSIONS)}")
    return found


def openssl_ciphers(names: Iterable[str]) -> str:
    """The suites of `--tls-cipher-suites` as OpenSSL takes them; empty if there is nothing to restrict."""
    found = []
    for name in names:
        if name in TLS13_SUITES:
            continue
        if name not in CIPHER_SUITES:
            raise ServingError(f"--tls-cipher-suites: Cipher suite {name} not supported or doesn't exist")
        found.append(CIPHER_SUITES[name])
    return ":".join(found)


_Status = tuple[int, int, int] | None


class FileWatch:
    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        self._seen = self._look()

    def has_changed(self) -> bool:
        seen = self._look()
        changed = seen != self._seen
        self._seen = seen
        return changed

    def _look(self) -> list[_Status]:
        return [_status(file) for file in self.files]


def _status(file: Path) -> _Status:
    """None if it is not there (any more)."""
    try:
        found = os.stat(file)  # noqa: PTH116 - follows links, as mounted Secrets are swapped by moving one
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


_log = logging.getLogger("kubesched.serving")


class CaBundle:
    """`version` grows whenever the CAs change."""

    def __init__(self, pem: str = "") -> None:
        self.version = 0
        self.pem = ""
        self._given = ""
        self._ders: frozenset[bytes] = frozenset()
        self._watch: FileWatch | None = None
        if pem:
            self.set(pem)

    @classmethod
    def from_file(cls, path: str, flag: str) -> CaBundle:
        bundle = cls()
        try:
            bundle.set(Path(path).read_text())
        except (OSError, ValueError) as problem:
            raise ServingError(f"{flag}: {path}: {problem}") from None
        bundle._watch = FileWatch((Path(path),))
        return bundle

    def set(self, pem: str) -> None:
        """Raises ValueError if there is no certificate in it."""
        if pem == self._given:
            return
        certificates = x509.load_pem_x509_certificates(pem.encode())
        self._given = pem
        # Written anew, as OpenSSL does not take the remarks between certificates in all languages.
        self.pem = "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)
        self._ders = frozenset(certificate.public_bytes(Encoding.DER) for certificate in certificates)
        self.version += 1

    def refresh(self) -> None:
        """Reads the file again if it changed; what cannot be read leaves the CAs as they were."""
        if self._watch is None or not self._watch.has_changed():
            return
        try:
            self.set(self._watch.files[0].read_text())
        except (OSError, ValueError) as problem:
            _log.error("Loading a CA bundle failed", extra={"fields": {"file": self._watch.files[0], "err": problem}})

    def __bool__(self) -> bool:
        return bool(self._ders)

    def __contains__(self, der: object) -> bool:
        return der in self._ders


_VALID_FOR = timedelta(days=365)


class PemPair(NamedTuple):
    """A certificate (with the chain behind it) and its key."""

    certificate: bytes
    key: bytes


def self_signed(bind_address: str, now: datetime | None = None) -> PemPair:
    """For the address the server listens on; for `localhost` if it listens on all."""
    now = datetime.now(UTC) if now is None else now
    host, stamp = "localhost", int(now.timestamp())
    authority, key = Authority.create(f"{host}-ca@{stamp}", now, _VALID_FOR), new_key()
    leaf = authority.server_certificate(f"{host}@{stamp}", _hosts(host, bind_address), key, now, _VALID_FOR)
    return PemPair(leaf + authority.pem, key_pem(key))


def write_pair(pair: PemPair, certificate_file: Path, key_file: Path) -> None:
    """The key is readable for nobody else, from its first byte on."""
    for file, content, mode in ((certificate_file, pair.certificate, 0o644), (key_file, pair.key, 0o600)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
            opened.write(content)


def _hosts(host: str, bind_address: str) -> list[str]:
    found = [host, "127.0.0.1"]
    try:
        is_any = ipaddress.ip_address(bind_address).is_unspecified
    except ValueError:
        is_any = False
    return found if is_any or bind_address in found else [*found, bind_address]


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
        self._min_version = min_version(settings.tls_min_version)
        self._ciphers = openssl_ciphers(settings.tls_cipher_suites)
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
