"""Who asks: bearer tokens, client certificates, service accounts' tokens; and who the headers ask to be instead.

Guarantees the real server's answers: a token that is not known is 401, none at all is ``system:anonymous`` (which may
read health and version only). ``verbs/authorization.py`` decides what the user may do,
``verbs/impersonation.py`` whom it may be.
"""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from aiohttp import web
from multidict import CIMultiDictProxy

from kubesched.playground.apiserver.errors import StatusError, bad_request
from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.verbs.request import RequestUser
from kubesched.playground.apiserver.verbs.service_tokens import (
    API_AUDIENCES,
    Identified,
    InvalidTokenError,
    ServiceTokens,
)

_EXTRA = "impersonate-extra-"
ANONYMOUS = RequestUser("system:anonymous", ("system:unauthenticated",))
ADMIN = RequestUser("admin", ("system:masters", "system:authenticated"), "admin")


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


class TokenAuthenticator:
    """Knows the administrator's token and checks those of service accounts."""

    def __init__(self, token: str, service_tokens: ServiceTokens) -> None:
        self._token = token.encode()
        self._service_tokens = service_tokens
        self._of_connections: WeakKeyDictionary[ssl.SSLObject, RequestUser | None] = WeakKeyDictionary()

    def user_of(self, request: web.BaseRequest) -> RequestUser:
        """The user of the connection or of the token. Raises 401 for a wrong token."""
        certified = self._of_certificate(request)
        if certified is not None:
            return certified
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        try:
            return self.identify(token).user
        except InvalidTokenError:
            raise unauthorized() from None

    def _of_certificate(self, request: web.BaseRequest) -> RequestUser | None:
        """A connection keeps its certificate: it is read with the first request."""
        connection = request.transport.get_extra_info("ssl_object") if request.transport else None
        if not isinstance(connection, ssl.SSLObject):
            return None
        if connection not in self._of_connections:
            self._of_connections[connection] = _user_of_certificate(connection.getpeercert())
        return self._of_connections[connection]

    def identify(self, token: str, audiences: Sequence[str] = API_AUDIENCES) -> Identified:
        """Whose token it is. Raises InvalidTokenError."""
        if not token.isascii():
            raise InvalidTokenError
        if not hmac.compare_digest(token.encode(), self._token):
            return self._service_tokens.identify(token, audiences)
        common = tuple(audience for audience in audiences if audience in API_AUDIENCES)
        if not common:
            raise InvalidTokenError
        return Identified(ADMIN, common)


def _user_of_certificate(certificate: Mapping[str, Any] | None) -> RequestUser | None:
    """The subject of a certificate that our authority signed: the common name is the user, the organizations are the
    groups.
    """
    pairs = [pair for name in (certificate or {}).get("subject", ()) for pair in name]
    names = [value for key, value in pairs if key == "commonName"]
    groups = [value for key, value in pairs if key == "organizationName"]
    return RequestUser(names[0], (*groups, "system:authenticated")) if names else None


def impersonated(headers: CIMultiDictProxy[str]) -> RequestUser | None:
    """The user that the headers ask to be, if any, exactly as asked for; ``Impersonation.become`` says whether."""
    name, uid = headers.get("Impersonate-User", ""), headers.get("Impersonate-Uid", "")
    groups = tuple(headers.getall("Impersonate-Group", []))
    extra: dict[str, list[str]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA):
            extra.setdefault(unquote(header[len(_EXTRA) :].lower()), []).append(value)
    if name:
        return RequestUser(name, groups, uid, extra)
    if uid or groups or extra:
        raise _without_name(groups, uid, extra)
    return None


def _without_name(groups: tuple[str, ...], uid: str, extra: Mapping[str, list[str]]) -> StatusError:
    shown_extra = "(nil)"
    if extra:
        shown_extra = "{" + ", ".join(f"{quoted(key)}:[]string{_strings(extra[key])}" for key in sorted(extra)) + "}"
    listed = f"[]string{_strings(groups)}" if groups else "[]string(nil)"
    user = f'&user.DefaultInfo{{Name:"", UID:{quoted(uid)}, Groups:{listed}, Extra:map[string][]string{shown_extra}}}'
    return bad_request(f"requested {user} without impersonating a user name")


def _strings(texts: Iterable[str]) -> str:
    return "{" + ", ".join(quoted(text) for text in texts) + "}"
