"""A kubeconfig's user as credentials: checks that its fields make sense together, and picks the way to log in.

The checks and their order are kubectl's: one of token and password, a certificate with its key, exec and auth-provider
not together, `as` for any other field of impersonation.

Impersonation is a set of headers beside whatever logs us in.

Next: the sibling modules, one per way; `kubesched.k8s.client.kubeconfig`, the caller.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kubesched.k8s.client.credentials.exec_plugin import VERSIONS, ExecPluginCredentials
from kubesched.k8s.client.credentials.stored import (
    FollowedFiles,
    StaticCredentials,
    TokenFileCredentials,
    basic,
    bearer,
)
from kubesched.k8s.client.kubeconfig_file import AuthProviderEntry, EntryPlace, ExecEntry, Placed, UserEntry
from kubesched.k8s.client.target import (
    Credentials,
    Headers,
    NoCredentials,
    TlsMaterialError,
    make_tls_context,
    show_certificate,
)


class Impersonating:
    """Headers of `inner` followed by the impersonation's own."""

    def __init__(self, inner: Credentials, extra: Headers) -> None:
        self._inner = inner
        self._extra = extra
        self._login: Headers = ()
        self._both: Headers = extra

    @property
    def connection_epoch(self) -> int:
        return self._inner.connection_epoch

    async def headers(self) -> Headers:
        login = await self._inner.headers()
        if login is not self._login:
            self._login = login
            self._both = (*login, *self._extra)
        return self._both

    async def renew(self, used: Headers, epoch: int) -> bool:
        if used is not self._both or epoch != self.connection_epoch:
            return True
        return await self._inner.renew(self._login, epoch)

    def advice(self) -> str:
        return self._inner.advice()

    async def close(self) -> None:
        await self._inner.close()


def impersonation_headers(user: str, uid: str, groups: Sequence[str], extra: Mapping[str, Sequence[str]]) -> Headers:
    headers = [("Impersonate-User", user)]
    if uid:
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", group) for group in groups]
    # A key of `extra` becomes part of a header's name: what a name cannot hold is percent-encoded.
    headers += [
        (f"Impersonate-Extra-{quote(key.lower(), safe='!#$&*+^`|~')}", value)
        for key, values in extra.items()
        for value in values
    ]
    return tuple(headers)


_REPLACED_PROVIDERS = {
    "gcp": "use the credential plugin gke-gcloud-auth-plugin (gcloud container clusters get-credentials writes it)",
    "azure": "use the credential plugin kubelogin (kubelogin convert-kubeconfig writes it)",
}


@dataclass(frozen=True)
class LoginSurroundings:
    """What logging in needs to know of the server: its TLS context, None for http, and what plugins learn of it."""

    ssl_context: ssl.SSLContext | None
    cluster_info: Callable[[], dict[str, Any]]


def credentials_of(user: Placed[UserEntry], around: LoginSurroundings) -> Credentials:
    entry, place = user.entry, user.place
    _check_together(entry, place)
    credentials = _login_of(entry, place, around)
    if entry.client_certificate or entry.client_certificate_data:
        credentials = _with_certificate(credentials, entry, place, around.ssl_context)
    if entry.as_user:
        extra = impersonation_headers(entry.as_user, entry.as_uid, entry.as_groups, entry.as_user_extra)
        return Impersonating(credentials, extra)
    if entry.as_uid or entry.as_groups or entry.as_user_extra:
        raise place.error("as", "is required with as-uid, as-groups and as-user-extra")
    return credentials


def _check_together(entry: UserEntry, place: EntryPlace) -> None:
    if (entry.token or entry.token_file) and (entry.username or entry.password):
        raise place.error("token", "only one of token and username/password is allowed")
    if entry.exec is not None and entry.auth_provider is not None:
        raise place.error("exec", "cannot be used together with auth-provider")
    for one, other in (("client_certificate", "client_certificate_data"), ("client_key", "client_key_data")):
        if getattr(entry, one) and getattr(entry, other):
            name = one.replace("_", "-")
            raise place.error(name, f"only one of {name} and {name}-data is allowed")
    has_certificate = bool(entry.client_certificate or entry.client_certificate_data)
    has_key = bool(entry.client_key or entry.client_key_data)
    if has_certificate and not has_key:
        raise place.error("client-key", "client-key or client-key-data is required with a client certificate")
    if has_key and not has_certificate:
        raise place.error("client-certificate", "client-certificate or client-certificate-data is required with a key")


def _login_of(entry: UserEntry, place: EntryPlace, around: LoginSurroundings) -> Credentials:
    where = f'user "{place.name}" of {place.file}'
    if entry.token_file:
        return TokenFileCredentials(place.path(entry.token_file), fallback=entry.token)
    if entry.token:
        return StaticCredentials(bearer(entry.token), f"the token of {where} is wrong or has expired: put in a new one")
    if entry.username or entry.password:
        advice = f"check username and password of {where}"
        return StaticCredentials(basic(entry.username, entry.password), advice)
    if entry.exec is not None:
        return _exec_plugin(entry.exec, place, around)
    if entry.auth_provider is not None:
        return _auth_provider(entry.auth_provider, place)
    return NoCredentials()


def _exec_plugin(entry: ExecEntry, place: EntryPlace, around: LoginSurroundings) -> Credentials:
    if not entry.command:
        raise place.error("exec.command", "is required")
    if entry.api_version not in VERSIONS:
        raise place.error("exec.apiVersion", f"must be one of {', '.join(VERSIONS)}")
    modes = ("Never", "IfAvailable", "Always")
    if not entry.interactive_mode and entry.api_version == VERSIONS[0]:
        raise place.error("exec.interactiveMode", f"is required: one of {', '.join(modes)}")
    if entry.interactive_mode and entry.interactive_mode not in modes:
        raise place.error("exec.interactiveMode", f"must be one of {', '.join(modes)}")
    if entry.interactive_mode == "Always":
        raise place.error(
            "exec.interactiveMode", "is Always, but kubesched cannot ask anybody; use IfAvailable or Never"
        )
    if any(not pair.name for pair in entry.env):
        raise place.error("exec.env", "every variable needs a name")

    def show(certificate: bytes, key: bytes) -> None:
        if around.ssl_context is not None:
            show_certificate(around.ssl_context, certificate, key)

    cluster = around.cluster_info() if entry.provide_cluster_info else None
    return ExecPluginCredentials(entry, place, show_certificate=show, cluster=cluster)


def _auth_provider(entry: AuthProviderEntry, place: EntryPlace) -> Credentials:
    if entry.name != "oidc":
        hint = _REPLACED_PROVIDERS.get(entry.name, "use a credential plugin (exec) instead")
        raise place.error("auth-provider", f"{entry.name!r} is not supported; {hint}")
    config = entry.config
    for name in ("idp-issuer-url", "client-id"):
        if not config.get(name):
            raise place.error(f"auth-provider.config.{name}", "is required")
    from kubesched.k8s.client.credentials.oidc import OidcCredentials, OidcSettings

    settings = OidcSettings(
        issuer_url=config["idp-issuer-url"],
        client_id=config["client-id"],
        client_secret=config.get("client-secret", ""),
        id_token=config.get("id-token", ""),
        refresh_token=config.get("refresh-token", ""),
        ssl_context=_issuer_tls(config, place),
    )
    return OidcCredentials(settings, place)


def _issuer_tls(config: dict[str, str], place: EntryPlace) -> ssl.SSLContext | None:
    field_name = "auth-provider.config.idp-certificate-authority"
    if data := config.get("idp-certificate-authority-data"):
        field_name += "-data"
        pem = place.data(field_name, data)
    elif file := config.get("idp-certificate-authority"):
        pem = place.read(field_name, file)
    else:
        return None
    try:
        return make_tls_context(authorities=pem)
    except TlsMaterialError as failure:
        raise place.error(field_name, str(failure)) from None


def _with_certificate(
    inner: Credentials, entry: UserEntry, place: EntryPlace, context: ssl.SSLContext | None
) -> Credentials:
    if context is None:
        return inner  # plain http has no handshake to show it in

    def load() -> None:
        certificate = _material(place, "client-certificate", entry.client_certificate, entry.client_certificate_data)
        key = _material(place, "client-key", entry.client_key, entry.client_key_data)
        show_certificate(context, certificate, key)

    try:
        load()
    except TlsMaterialError as failure:
        raise place.error("client-certificate", str(failure)) from None
    files = tuple(place.path(value) for value in (entry.client_certificate, entry.client_key) if value)
    if files:
        names = " and ".join(str(path) for path in files)
        advice = f"check that the client certificate in {names} is of this cluster and has not expired"
        return FollowedFiles(inner, files, load, advice=advice if isinstance(inner, NoCredentials) else inner.advice())
    if isinstance(inner, NoCredentials):
        advice = f'the client certificate of user "{place.name}" of {place.file} is of another cluster or has expired'
        return StaticCredentials((), advice)
    return inner


def _material(place: EntryPlace, field_name: str, file: str, data: str) -> bytes:
    return place.data(f"{field_name}-data", data) if data else place.read(field_name, file)


def files_of(user: Placed[UserEntry]) -> tuple[Path, ...]:
    """The files that a user's entry refers to and that are read."""
    entry = user.entry
    named = (entry.client_certificate, entry.client_key, entry.token_file)
    return tuple(user.place.path(value) for value in named if value)
