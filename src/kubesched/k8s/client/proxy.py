"""Which proxy leads to a server, by the environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY as kubectl reads them.

Capital letters win over small ones. NO_PROXY is a list of hosts, domains (with or without a leading dot, both cover
their subdomains; with a leading dot not the domain itself), addresses, CIDR blocks, each with an optional port, or `*`.
Loopback addresses never go through a proxy.

Next: `kubeconfig`, whose `proxy-url` comes first.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from kubesched.k8s.errors import KubeschedError

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
