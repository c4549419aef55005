"""Where an API server is, how to get there, and how to log in to it: all that `RestClient` needs to know.

A `ServerTarget` is made by `kubeconfig.load_target` or `kubeconfig.load_in_cluster_target`, and in tests by hand:
`ServerTarget(url="http://127.0.0.1:8080")`. `Credentials` is what the ways of logging in have in common.

Which proxy leads to a server says the environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY as kubectl reads them. Capital
letters win over small ones. NO_PROXY is a list of hosts, domains (with or without a leading dot, both cover their
subdomains; with a leading dot not the domain itself), addresses, CIDR blocks, each with an optional port, or `*`.
Loopback addresses never go through a proxy.

TLS contexts say which authorities to trust and which client certificate to show. Private keys that come as data are
handed to OpenSSL through anonymous memory where the system has it, else through a file that only we can read and that
is gone before the function returns.

Next: `kubeconfig`, whose `proxy-url` comes first; `credentials` (the ways of logging in), `rest` (who asks for headers
before each request).
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from kubesched.k8s.errors import KubeschedError

Headers = tuple[tuple[str, str], ...]


class Credentials(Protocol):
    """How requests prove who we are. Asked before every request, so the usual answer must cost next to nothing."""

    @property
    def connection_epoch(self) -> int:
        """Grows when connections opened before must not be used for new requests (a new client certificate)."""
        ...

    async def headers(self) -> Headers:
        """The headers to send; renews first what has expired. The same object as long as nothing changed.

        Raises `ClientConfigError` when there is no way to get valid credentials.
        """
        ...

    async def renew(self, used: Headers, epoch: int) -> bool:
        """The server answered 401 to the headers `used`, sent at that `epoch`. True when there are others now.

        Many requests may be refused at once; the first renews, and the others find it done.
        """
        ...

    def advice(self) -> str:
        """What a user should do when the server keeps answering 401."""
        ...

    async def close(self) -> None: ...


class NoCredentials:
    """Nobody in particular: requests carry nothing."""

    connection_epoch = 0

    async def headers(self) -> Headers:
        return ()

    async def renew(self, used: Headers, epoch: int) -> bool:
        return False

    def advice(self) -> str:
        return "no credentials are configured: name a user in the kubeconfig's context"

    async def close(self) -> None:
        return None


@dataclass(frozen=True)
class ServerTarget:
    """One API server. `url` has a scheme, no slash at the end, and may have a path (servers behind a gateway)."""

    url: str
    ssl_context: ssl.SSLContext | None = None
    """None for http, and for https with the system's certificate authorities."""
    tls_server_name: str | None = None
    """The name to expect in the server's certificate, when it is not the URL's host."""
    proxy: str | None = None
    namespace: str = "default"
    credentials: Credentials = field(default_factory=NoCredentials)
    source: str = "a URL given by hand"
    """Where this came from, for messages: "context kind of /home/me/.kube/config"."""
    files: tuple[Path, ...] = ()
    """The files that were read (kubeconfigs, certificate authorities, tokens), for messages and for watching them."""

    @property
    def is_tls(self) -> bool:
        return self.url.startswith("https://")


_SUPPORTED = ("http", "https")


class ProxyUrlError(KubeschedError, ValueError):
    """A proxy URL that cannot be used; says why without repeating the URL, which may hold a password."""


def proxy_from_environment(url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy for the server at `url`, or None for a direct connection."""
    parts = urlsplit(url)
    names = ("HTTPS_PROXY", "https_proxy") if parts.scheme == "https" else ("HTTP_PROXY", "http_proxy")
    found = _first(environ, names)
    host = (parts.hostname or "").rstrip(".").lower()
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not found or _is_loopback(host) or _is_exempt(host, port, _first(environ, ("NO_PROXY", "no_proxy"))):
        return None
    try:
        return check_proxy_url(found if "://" in found else f"http://{found}")
    except ProxyUrlError as failure:
        used = next(name for name in names if environ.get(name))
        raise ProxyUrlError(f"the environment variable {used}: {failure}") from None


def check_proxy_url(url: str) -> str:
    """The URL itself, when it is one that we can use."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ProxyUrlError("not a URL") from None
    if parts.scheme in ("socks5", "socks5h"):
        raise ProxyUrlError("SOCKS proxies are not supported; use an http:// or https:// proxy")
    if parts.scheme not in _SUPPORTED or not host:
        raise ProxyUrlError("must be a URL like http://proxy.example:3128")
    return url


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := environ.get(name, ""))), "")


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _is_exempt(host: str, port: int, no_proxy: str) -> bool:
    return any(_covers(entry.strip().lower(), host, port) for entry in no_proxy.split(",") if entry.strip())


def _covers(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    address = _address(host)
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, entry_port = _split_port(entry)
    if entry_port and entry_port != str(port):
        return False
    if address is not None:
        return _address(name) == address
    if name.startswith("*."):
        name = name[1:]
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


_PEM_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")


class TlsMaterialError(KubeschedError, ValueError):
    """A certificate or key cannot be used; the text says why and holds nothing of it."""


def make_tls_context(*, authorities: bytes | None = None, verify: bool = True) -> ssl.SSLContext:
    """A context that trusts `authorities` (PEM), or the system's when None, or anybody when not `verify`."""
    if not verify:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities is None:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trust(context, authorities)
    # As Go's TLS does: any certificate given as an authority is one, and old authorities without key ids are accepted.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def trust(context: ssl.SSLContext, authorities: bytes) -> None:
    """Adds authorities (PEM) to those that the context trusts."""
    blocks = _PEM_CERTIFICATE.findall(authorities)
    if not blocks:
        raise TlsMaterialError("holds no PEM certificate")
    try:
        context.load_verify_locations(cadata=b"\n".join(blocks).decode("ascii"))
    except ssl.SSLError as failure:
        raise TlsMaterialError(f"holds a PEM certificate that cannot be read ({failure.reason})") from None


def show_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Makes new connections of the context show this client certificate (PEM)."""
    pem = certificate.rstrip() + b"\n" + key.rstrip() + b"\n"
    try:
        if hasattr(os, "memfd_create"):
            _load_from_memory(context, pem)
        else:
            _load_from_private_file(context, pem)
    except ssl.SSLError as failure:
        if failure.reason == "KEY_VALUES_MISMATCH":
            raise TlsMaterialError("the private key does not belong to the certificate") from None
        raise TlsMaterialError(f"not a PEM certificate with an unencrypted private key ({failure.reason})") from None


def _load_from_memory(context: ssl.SSLContext, pem: bytes) -> None:
    number = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        os.write(number, pem)
        context.load_cert_chain(f"/proc/self/fd/{number}", password=_no_password)
    finally:
        os.close(number)


def _load_from_private_file(context: ssl.SSLContext, pem: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="kubesched-") as directory:  # 0700
        path = Path(directory, "client.pem")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path, password=_no_password)


def _no_password() -> str:
    """OpenSSL would ask on the terminal."""
    return ""
