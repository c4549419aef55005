"""Who a trusted proxy says is asking. Its headers count only with a certificate of the proxies' CA.

Next: `authentication`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from multidict import CIMultiDictProxy

from kubesched.live.serving.access.client_certificate import VerifiedChain, common_name
from kubesched.live.serving.access.user import AuthenticationError, UserInfo
from kubesched.live.serving.errors import ServingError
from kubesched.live.serving.settings import RequestHeaderSettings
from kubesched.live.serving.tls.ca_bundle import CaBundle

Headers = CIMultiDictProxy[str]


@dataclass(slots=True)
class RequestHeaders:
    """Names may change while the server runs: the cluster is looked at again (`cluster_lookup`)."""

    cas: CaBundle
    names: RequestHeaderSettings

    def user_of(self, chain: VerifiedChain, headers: Headers) -> UserInfo | None:
        """None if the proxy speaks for nobody. Raises `AuthenticationError` if it is not to be trusted."""
        chain.check_traced_to(self.cas)
        proxy = common_name(chain.leaf.subject)
        if self.names.allowed_names and proxy not in self.names.allowed_names:
            raise AuthenticationError(f"x509: subject with cn={proxy} is not in the allowed list")
        name = _first(headers, self.names.username_headers)
        if not name:
            return None
        groups = tuple(value for key in self.names.group_headers for value in headers.getall(key, ()) if value)
        return UserInfo(
            name, _first(headers, self.names.uid_headers), groups, _extra(headers, self.names.extra_header_prefixes)
        )


def check_header_names(settings: RequestHeaderSettings) -> None:
    """Raises `ServingError` for a name that is none."""
    for flag, names in (
        ("username-headers", settings.username_headers),
        ("uid-headers", settings.uid_headers),
        ("group-headers", settings.group_headers),
        ("extra-headers-prefix", settings.extra_header_prefixes),
    ):
        for name in names:
            if not name.strip():
                raise ServingError(f"--requestheader-{flag}: empty header {name!r}")


def _first(headers: Headers, names: Iterable[str]) -> str:
    return next((value for name in names if (value := headers.get(name, ""))), "")


def _extra(headers: Headers, prefixes: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for prefix in prefixes:
        for name, value in headers.items():
            if name.lower().startswith(prefix.lower()):
                key = unquote(name[len(prefix) :].lower())
                found[key] = (*found.get(key, ()), value)
    return found
