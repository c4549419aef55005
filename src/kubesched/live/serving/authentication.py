"""Who is asking: a trusted proxy's word, a client certificate, or a token, in this order; else it is anonymous.

One way that says yes is enough. If none does and one of them was tried in vain (a token of nobody), the request is
refused rather than taken for an anonymous one. TLS has checked a certificate against all CAs that are trusted for
anything; here it is asked whether the one that counts is among those it was traced to: the common name is the user, the
organizations are the groups. A proxy's headers count only with a certificate of the proxies' CA. Whose a token is, the
API server knows; its answers are kept for a while, under a keyed hash: tokens are not kept.

CAs and header names that no flag gives are those that the API server publishes for its extensions in a ConfigMap. It is
looked at when the server starts, and again every minute.

The API server is asked by POST (`review`): nothing is stored, so it is safe to repeat. That is done, with growing
pauses, while the server is overloaded or broken; not when it cannot be reached. Answers are good for a while; those
that were long not used go first when there are too many (`ExpiringCache`).

Next: `server`, which asks who may see what.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.x509.oid import NameOID, ObjectIdentifier
from multidict import CIMultiDictProxy

from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
from kubesched.live.serving.certificates import CaBundle
from kubesched.live.serving.settings import RequestHeaderSettings, ServingError

ANONYMOUS_NAME = "system:anonymous"
UNAUTHENTICATED = "system:unauthenticated"
AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True, slots=True)
class UserInfo:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def authenticated(self) -> UserInfo:
        """With the group that everybody is in who is known."""
        if self.name == ANONYMOUS_NAME or {AUTHENTICATED, UNAUTHENTICATED} & set(self.groups):
            return self
        return replace(self, groups=(*self.groups, AUTHENTICATED))


ANONYMOUS = UserInfo(ANONYMOUS_NAME, groups=(UNAUTHENTICATED,))


class AuthenticationError(Exception):
    """Somebody claims to be somebody, and it is not so, or it could not be found out. Holds no secret."""


CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_UID = ObjectIdentifier("1.3.6.1.4.1.57683.2")
_DER = 2  # how `_ssl.Certificate.public_bytes` is told to give DER
_MOST_KEPT = 1024
_KEPT_FOR_S = 7200.0
"""OpenSSL resumes nothing that is older."""


@dataclass(frozen=True, slots=True)
class VerifiedChain:
    """Certificates as DER, the client's first, up to the one that is trusted."""

    ders: tuple[bytes, ...]

    @property
    def leaf(self) -> x509.Certificate:
        try:
            return x509.load_der_x509_certificate(self.ders[0])
        except ValueError as problem:  # OpenSSL takes some that are not quite right
            raise AuthenticationError(f"the client's certificate cannot be read: {problem}") from None

    def check_traced_to(self, bundle: CaBundle) -> None:
        """Also that it is still valid: connections may stand for long."""
        leaf = self.leaf
        problem = ""
        if not any(der in bundle for der in self.ders):
            problem = "x509: certificate signed by unknown authority"
        elif not leaf.not_valid_before_utc <= datetime.now(UTC) <= leaf.not_valid_after_utc:
            problem = "x509: certificate has expired or is not yet valid"
        if problem:
            raise AuthenticationError(f"verifying certificate SN={leaf.serial_number} failed: {problem}")


class VerifiedChains:
    """Of connections. One that resumes an earlier one brings the client's certificate alone: what was found out then,
    counts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._known: ExpiringCache[bytes, VerifiedChain] = ExpiringCache(clock, _MOST_KEPT)

    def of(self, ssl_object: Any) -> VerifiedChain | None:
        """None if the client showed no certificate."""
        der = None if ssl_object is None else ssl_object.getpeercert(binary_form=True)
        if der is None:
            return None
        if ssl_object.session_reused:
            return self._known.get(der) or VerifiedChain((der,))
        chain = VerifiedChain((der, *_issuers(ssl_object)))
        self._known.put(der, chain, _KEPT_FOR_S)
        return chain


def _issuers(ssl_object: Any) -> Sequence[bytes]:
    """Public since Python 3.13; before, the same method of what stands behind."""
    if hasattr(ssl_object, "get_verified_chain"):
        return tuple(ssl_object.get_verified_chain() or ())[1:]
    chain = ssl_object._sslobj.get_verified_chain() or ()
    return tuple(certificate.public_bytes(_DER) for certificate in chain)[1:]


def user_of_certificate(chain: VerifiedChain) -> UserInfo | None:
    """None if the certificate names nobody."""
    subject = chain.leaf.subject
    name = common_name(subject)
    if not name:
        return None
    groups = tuple(_values(subject, NameOID.ORGANIZATION_NAME))
    fingerprint = f"X509SHA256={hashlib.sha256(chain.ders[0]).hexdigest()}"
    return UserInfo(name, _uid(subject), groups, {CREDENTIAL_ID: (fingerprint,)})


def common_name(subject: x509.Name) -> str:
    """The last one, as Go has it."""
    names = _values(subject, NameOID.COMMON_NAME)
    return names[-1] if names else ""


def _uid(subject: x509.Name) -> str:
    uids = _values(subject, _UID)
    if len(uids) > 1:
        raise AuthenticationError(f"expected 1 UID, but found multiple: [{' '.join(uids)}]")
    if uids == [""]:
        raise AuthenticationError("UID cannot be an empty string")
    return uids[0] if uids else ""


def _values(subject: x509.Name, oid: ObjectIdentifier) -> list[str]:
    values = (attribute.value for attribute in subject.get_attributes_for_oid(oid))
    return [value if isinstance(value, str) else value.decode(errors="replace") for value in values]


Headers = CIMultiDictProxy[str]


@dataclass(slots=True)
class RequestHeaders:
    """Names may change while the server runs: the cluster is looked at again (`ClusterLookup`)."""

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


TOKEN_REVIEWS_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
INVALID = "invalid bearer token"
_MOST_TOKENS_KEPT = 4096


def bearer_token(headers: Mapping[str, str]) -> str:
    """The token in the Authorization header; empty if there is none."""
    parts = headers.get("Authorization", "").strip().split(" ", 2)
    return parts[1] if len(parts) >= 2 and parts[0].lower() == "bearer" else ""


class TokenReviews:
    def __init__(
        self,
        client: ReviewClient,
        ttl_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._client = client
        self._ttl_s = ttl_s
        self._sleep = sleep
        self._salt = secrets.token_bytes(32)
        self._known: ExpiringCache[bytes, UserInfo | str] = ExpiringCache(clock, _MOST_TOKENS_KEPT)

    async def user_of(self, token: str) -> UserInfo:
        """Raises `AuthenticationError` if the token is nobody's, or nobody could be asked."""
        if not token.isascii():
            raise AuthenticationError(INVALID)
        key = hmac.new(self._salt, token.encode(), hashlib.sha256).digest()
        found = self._known.get(key)
        if found is None:
            found = await self._asked(token)
            self._known.put(key, found, self._ttl_s)
        if isinstance(found, str):
            raise AuthenticationError(found)
        return found

    async def _asked(self, token: str) -> UserInfo | str:
        """The user, or why it is nobody's. What cannot be found out is raised, and so not kept."""
        question = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}}
        try:
            status = await review(self._client, TOKEN_REVIEWS_PATH, question, self._sleep)
        except ReviewError as problem:
            raise AuthenticationError(str(problem)) from None
        if not status.get("authenticated"):
            if status.get("error"):
                raise AuthenticationError(str(status["error"]))
            return INVALID
        return _user(status.get("user") or {})


def _user(found: dict[str, Any]) -> UserInfo:
    extra = {key: tuple(values) for key, values in (found.get("extra") or {}).items()}
    return UserInfo(found.get("username", ""), found.get("uid", ""), tuple(found.get("groups") or ()), extra)


@dataclass(frozen=True, slots=True)
class Authenticator:
    """What is None is a way that is not offered; a bundle without CAs has no opinion."""

    request_headers: RequestHeaders | None = None
    client_cas: CaBundle | None = None
    tokens: TokenReviews | None = None

    async def user_of(self, chain: VerifiedChain | None, headers: Headers) -> UserInfo:
        """Raises `AuthenticationError`."""
        problems: list[str] = []
        if chain is not None:
            found = self._by_certificate(chain, headers, problems)
            if found is not None:
                return found.authenticated()
        token = bearer_token(headers)
        if token and self.tokens is not None:
            try:
                return (await self.tokens.user_of(token)).authenticated()
            except AuthenticationError as problem:
                problems.append(str(problem))
        if problems:
            raise AuthenticationError(", ".join(problems))
        return ANONYMOUS

    def _by_certificate(self, chain: VerifiedChain, headers: Headers, problems: list[str]) -> UserInfo | None:
        proxies = self.request_headers
        if proxies is not None and proxies.cas:
            try:
                found = proxies.user_of(chain, headers)
                if found is not None:
                    return found
            except AuthenticationError as problem:
                problems.append(str(problem))
        if self.client_cas:
            try:
                chain.check_traced_to(self.client_cas)
                return user_of_certificate(chain)
            except AuthenticationError as problem:
                problems.append(str(problem))
        return None


CONFIG_MAP_NAMESPACE = "kube-system"
CONFIG_MAP_NAME = "extension-apiserver-authentication"
CONFIG_MAP_PATH = f"/api/v1/namespaces/{CONFIG_MAP_NAMESPACE}/configmaps/{CONFIG_MAP_NAME}"
LOOKUP_EVERY_S = 60.0

_TOLERATED = (
    "Continuing without authentication configuration. This may treat all requests as anonymous.",
    "To require authentication configuration lookup to succeed, set --authentication-tolerate-lookup-failure=false",
)
_log = logging.getLogger("kubesched.serving")


class LookupFailure(Exception):  # noqa: N818 - it is tolerated by default
    """The ConfigMap could not be read."""


@dataclass(slots=True)
class ClusterLookup:
    """Fills what is not None."""

    client: ReviewClient
    client_cas: CaBundle | None
    request_headers: RequestHeaders | None
    sleep: Sleep = asyncio.sleep

    async def first(self, *, tolerates_failure: bool) -> None:
        """A client CA that is not there never hinders the start; whether proxies' settings do, is a flag."""
        try:
            await self._look()
        except LookupFailure as problem:
            if self.request_headers is not None and not tolerates_failure:
                text = f"unable to load configmap based request-header-client-ca-file: {problem}"
                raise ServingError(text) from None
            _warn("Error looking up in-cluster authentication configuration", problem)
            for line in _TOLERATED:
                _log.warning(line)

    async def keep_looking(self) -> None:
        """Until cancelled."""
        while True:
            await self.sleep(LOOKUP_EVERY_S)
            try:
                await self._look()
            except LookupFailure as problem:
                _warn("Looking up in-cluster authentication configuration failed", problem)

    async def _look(self) -> None:
        try:
            body = await self.client.request("GET", CONFIG_MAP_PATH)
        except ApiError as problem:
            if problem.is_not_found:
                return
            raise LookupFailure(str(problem)) from problem
        except (Unreachable, AnswerLost, ClientConfigError) as problem:
            raise LookupFailure(str(problem)) from problem
        try:
            self._take(msgspec.json.decode(body, type=_ConfigMap).data)
        except (msgspec.DecodeError, ValueError) as problem:
            raise LookupFailure(f"configmap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP_NAME}: {problem}") from None

    def _take(self, data: dict[str, str]) -> None:
        if self.client_cas is not None and data.get("client-ca-file"):
            self.client_cas.set(data["client-ca-file"])
        if self.request_headers is None or not data.get("requestheader-client-ca-file"):
            return
        self.request_headers.names = replace(
            self.request_headers.names,
            allowed_names=_names(data, "requestheader-allowed-names"),
            username_headers=_names(data, "requestheader-username-headers"),
            uid_headers=_names(data, "requestheader-uid-headers"),
            group_headers=_names(data, "requestheader-group-headers"),
            extra_header_prefixes=_names(data, "requestheader-extra-headers-prefix"),
        )
        self.request_headers.cas.set(data["requestheader-client-ca-file"])


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


def _names(data: dict[str, str], key: str) -> tuple[str, ...]:
    """A list, as JSON in a string."""
    return msgspec.json.decode(data[key], type=tuple[str, ...]) if data.get(key) else ()


def _warn(message: str, problem: Any) -> None:
    _log.warning(message, extra={"fields": {"err": str(problem)}})


TIMEOUT_S = 10.0
"""For a question with all its repetitions."""
_PAUSES_S = (0.5, 0.75, 1.125, 1.7)

Sleep = Callable[[float], Awaitable[None]]


class ReviewError(Exception):
    """The API server gave no answer that could be used."""


class ReviewClient(Protocol):
    """As much of `RestClient` as is needed here."""

    async def request(
        self, method: str, path: str, *, body: bytes | None = None, timeout_s: float | None = None
    ) -> bytes: ...


async def review(client: ReviewClient, path: str, question: dict[str, Any], sleep: Sleep = asyncio.sleep) -> Any:
    """The `status` of the answer, as a dictionary. Raises `ReviewError`."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            body = await _asked(client, path, msgspec.json.encode(question), sleep)
    except TimeoutError:
        raise ReviewError(f"no answer to {path} within {TIMEOUT_S:g}s") from None
    except (ApiError, Unreachable, AnswerLost, ClientConfigError) as problem:
        raise ReviewError(str(problem)) from problem
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError as problem:
        raise ReviewError(f"the answer to {path} cannot be read: {problem}") from None
    status = answer.get("status") if isinstance(answer, dict) else None
    return status if isinstance(status, dict) else {}


async def _asked(client: ReviewClient, path: str, body: bytes, sleep: Sleep) -> bytes:
    for pause_s in _PAUSES_S:
        try:
            return await client.request("POST", path, body=body, timeout_s=TIMEOUT_S)
        except ApiError as problem:
            if problem.status not in (429, 500, 504):
                raise
        except AnswerLost:
            pass
        await sleep(pause_s)
    return await client.request("POST", path, body=body, timeout_s=TIMEOUT_S)


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ExpiringCache(Generic[Key, Value]):
    """`clock` gives seconds that only ever grow."""

    def __init__(self, clock: Callable[[], float], most: int) -> None:
        self._clock = clock
        self._most = most
        self._entries: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[0] <= self._clock():
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, key: Key, value: Value, for_s: float) -> None:
        if for_s <= 0:
            return
        self._entries[key] = (self._clock() + for_s, value)
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)
