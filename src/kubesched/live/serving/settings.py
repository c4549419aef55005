"""How the secure port is to be served: kube-scheduler's flags for serving, authentication and authorization, as data.

Defaults are kube-scheduler's. What cannot be served so is a `ServingError`, before the port opens; everything later is
an answer to a request. Next: `server`, which follows them.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class ServingError(Exception):
    """The secure port cannot be opened as configured; names the flag or the file."""


COMPONENT = "kube-scheduler"
"""Under which name pages speak of this program: tools look for it."""
DEFAULT_PORT = 10259
PAIR_NAME = "kube-scheduler"
"""How a certificate that is made under `cert_dir` is called."""


@dataclass(frozen=True, slots=True)
class RequestHeaderSettings:
    """Who a trusted proxy says is asking (`--requestheader-*`). Nobody is trusted without a CA."""

    client_ca_file: str = ""
    allowed_names: tuple[str, ...] = ()
    """Common names that the proxy's certificate may have; any, if empty."""
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_header_prefixes: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True, slots=True)
class AuthenticationSettings:
    client_ca_file: str = ""
    request_headers: RequestHeaderSettings = RequestHeaderSettings()
    token_cache_ttl_s: float = 10.0
    skip_lookup: bool = False
    """Do not look in the cluster for the CAs that no flag names."""
    tolerate_lookup_failure: bool = True


@dataclass(frozen=True, slots=True)
class AuthorizationSettings:
    always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    """A trailing `*` stands for whatever follows."""
    always_allow_groups: tuple[str, ...] = ("system:masters",)
    authorized_ttl_s: float = 10.0
    unauthorized_ttl_s: float = 10.0


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """Port 0 takes any port that is free."""

    bind_address: str = "0.0.0.0"
    port: int = DEFAULT_PORT
    cert_dir: str = ""
    """Where the certificate is made if none is given; in memory, if empty."""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_min_version: str = ""
    tls_cipher_suites: tuple[str, ...] = ()
    authentication: AuthenticationSettings = field(default_factory=AuthenticationSettings)
    authorization: AuthorizationSettings = field(default_factory=AuthorizationSettings)
    permit_port_sharing: bool = False
    permit_address_sharing: bool = False
    """Python's servers take an address that is still held, even without being told."""
    shutdown_timeout_s: float = 5.0
