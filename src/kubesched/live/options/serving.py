"""From flags to settings of the server: secure serving, authentication, authorization.

Mistakes are collected, so that the user sees all at once.

Next: `kubesched.live.serving.settings` for the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubesched.live.serving.settings import (
    AuthenticationSettings,
    AuthorizationSettings,
    RequestHeaderSettings,
    ServingSettings,
)
from kubesched.live.serving.tls import names

FlagValue = Callable[[str], Any]
"""The value of a flag by its name, given or default."""

_HIGHEST_PORT = 65535
_STANDARD_HEADERS = (
    ("requestheader-username-headers", "X-Remote-User", "header"),
    ("requestheader-group-headers", "X-Remote-Group", "header"),
    ("requestheader-extra-headers-prefix", "X-Remote-Extra-", "header prefix"),
)
_LISTS_WITHOUT_BLANKS = (
    "requestheader-username-headers",
    "requestheader-group-headers",
    "requestheader-extra-headers-prefix",
    "requestheader-allowed-names",
    "requestheader-uid-headers",
)


def serving_settings(value: FlagValue) -> ServingSettings | None:
    """None if nothing is to be served. Raises `ServingError` for names that TLS does not know."""
    suites, version = value("tls-cipher-suites"), value("tls-min-version")
    names.min_version(version)
    if suites and not names.openssl_ciphers(suites):
        # Suites of TLS 1.3 alone leave nothing to speak to older clients with.
        version = "VersionTLS13"
    if value("secure-port") == 0:
        return None
    return ServingSettings(
        bind_address=value("bind-address"),
        port=value("secure-port"),
        cert_dir=value("cert-dir"),
        tls_cert_file=value("tls-cert-file"),
        tls_private_key_file=value("tls-private-key-file"),
        tls_min_version=version,
        tls_cipher_suites=suites,
        authentication=_authentication(value),
        authorization=_authorization(value),
    )


def _authentication(value: FlagValue) -> AuthenticationSettings:
    return AuthenticationSettings(
        client_ca_file=value("client-ca-file"),
        request_headers=RequestHeaderSettings(
            client_ca_file=value("requestheader-client-ca-file"),
            allowed_names=value("requestheader-allowed-names"),
            username_headers=value("requestheader-username-headers"),
            uid_headers=value("requestheader-uid-headers"),
            group_headers=value("requestheader-group-headers"),
            extra_header_prefixes=value("requestheader-extra-headers-prefix"),
        ),
        token_cache_ttl_s=value("authentication-token-webhook-cache-ttl").seconds,
        skip_lookup=value("authentication-skip-lookup"),
        tolerate_lookup_failure=value("authentication-tolerate-lookup-failure"),
    )


def _authorization(value: FlagValue) -> AuthorizationSettings:
    return AuthorizationSettings(
        always_allow_paths=value("authorization-always-allow-paths"),
        authorized_ttl_s=value("authorization-webhook-cache-authorized-ttl").seconds,
        unauthorized_ttl_s=value("authorization-webhook-cache-unauthorized-ttl").seconds,
    )


def serving_mistakes(value: FlagValue) -> Iterator[str]:
    port = value("secure-port")
    if not 0 <= port <= _HIGHEST_PORT:
        yield f"--secure-port {port} must be between 0 and 65535, inclusive. 0 for turning off secure port"
    if bool(value("tls-cert-file")) != bool(value("tls-private-key-file")):
        yield "--tls-cert-file and --tls-private-key-file must be given together"
    for flag in _LISTS_WITHOUT_BLANKS:
        if not all(item.strip() for item in value(flag)):
            yield f'empty value in "{flag}"'
    uid_headers = value("requestheader-uid-headers")
    if uid_headers and "x-remote-uid" not in map(str.lower, uid_headers):
        yield (
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header"
            " - API aggregation will not work"
        )


def serving_warnings(value: FlagValue) -> Iterator[str]:
    for name, standard, what in _STANDARD_HEADERS:
        headers = value(name)
        if headers and standard.lower() not in map(str.lower, headers):
            yield (f"--{name} is set without specifying the standard {standard} {what} - API aggregation will not work")
    if value("tls-min-version") in ("VersionTLS10", "VersionTLS11"):
        yield f"--tls-min-version={value('tls-min-version')}: OpenSSL may be set to refuse versions before TLS 1.2"
