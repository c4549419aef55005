"""URLs: url(), isURL() and the parts of a URL, read and written as Go's net/url does.

Next: `named_formats`, which reads them too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.values.go_text import quote
from kubesched.k8s.cel.values.scalars import OpaqueValue

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_HOST_CHARS = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"]|[^\x00-\x7f]")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")
_UNSAFE_IN_PATH = re.compile(rb"[^A-Za-z0-9\-_.~$&+,/:;=@]")
_VALID_ENCODED_PATH = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/]|%[0-9a-fA-F]{2})*")


class UrlError(ValueError):
    """A text is not a URL."""


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """The parts of a URL; `path` is as written, still escaped."""

    scheme: str
    opaque: str
    user: str
    host: str
    path: str
    query: str
    fragment: str
    has_authority: bool


def parse(text: str) -> ParsedUrl:
    """Any URL reference."""
    bare, _, fragment = text.partition("#")
    try:
        parsed = _parse(bare, is_request=False)
        _check_escapes(fragment)
    except UrlError as error:
        raise UrlError(f"parse {quote(text)}: {error}") from None
    return ParsedUrl(
        parsed.scheme,
        parsed.opaque,
        parsed.user,
        parsed.host,
        parsed.path,
        parsed.query,
        fragment,
        parsed.has_authority,
    )


def parse_request_uri(text: str) -> ParsedUrl:
    """An absolute URL or an absolute path, as in a request line."""
    try:
        return _parse(text, is_request=True)
    except UrlError as error:
        raise UrlError(f"parse {quote(text)}: {error}") from None


def _parse(text: str, is_request: bool) -> ParsedUrl:
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and is_request:
        raise UrlError("empty url")
    if text == "*":
        return ParsedUrl("", "", "", "", "*", "", "", False)
    scheme, rest = _split_scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return ParsedUrl(scheme, rest, "", "", "", query, "", False)
        if is_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user, host, has_authority = "", "", False
    if rest.startswith("//") and (scheme or not is_request) and not rest.startswith("///"):
        has_authority = True
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _split_authority(authority)
    _check_escapes(rest)
    return ParsedUrl(scheme, "", user, host, rest, query, "", has_authority)


def _split_scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match is not None:
        return match.group(1).lower(), text[match.end() :]
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    return "", text


def _split_authority(authority: str) -> tuple[str, str]:
    user, at, host = authority.rpartition("@")
    if at and not re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", user):
        raise UrlError("net/url: invalid userinfo")
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise UrlError("missing ']' in host")
        _check_port(host[end + 1 :])
    else:
        colon = host.rfind(":")
        if colon >= 0:
            _check_port(host[colon:])
    for char in re.sub("%[0-9a-fA-F]{2}", "", host):
        if not _HOST_CHARS.fullmatch(char):
            raise UrlError(f"invalid character {quote(char)} in host name")
    return user, _unescaped(host).decode(errors="replace")


def _check_port(text: str) -> None:
    if text and not re.fullmatch(r":[0-9]*", text):
        raise UrlError(f"invalid port {quote(text)} after host")


def _check_escapes(text: str) -> None:
    bad = _BAD_ESCAPE.search(text)
    if bad is not None:
        raise UrlError(f"invalid URL escape {quote(bad.group())}")


def split_host(host: str) -> tuple[str, str]:
    """Host name without brackets, and port."""
    colon = host.rfind(":")
    name, port = host, ""
    if colon >= 0 and re.fullmatch(r":[0-9]*", host[colon:]) and not host.endswith("]"):
        name, port = host[:colon], host[colon + 1 :]
    return (name[1:-1] if name.startswith("[") and name.endswith("]") else name), port


def escaped_path(parsed: ParsedUrl) -> str:
    """The path as it may stand in a URL: as written if that is valid, escaped anew otherwise."""
    if _VALID_ENCODED_PATH.fullmatch(parsed.path) or parsed.path == "*":
        return parsed.path
    return _UNSAFE_IN_PATH.sub(lambda match: b"%%%02X" % match.group()[0], _unescaped(parsed.path)).decode()


def query_values(parsed: ParsedUrl) -> dict[str, list[str]]:
    """The values by key; what cannot be decoded is left out."""
    values: dict[str, list[str]] = {}
    for pair in parsed.query.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        key, _, value = pair.partition("=")
        values.setdefault(_decoded(key), []).append(_decoded(value))
    return values


def _decoded(text: str) -> str:
    return _unescaped(text.replace("+", " ")).decode(errors="replace")


def _unescaped(text: str) -> bytes:
    return _ESCAPE.sub(lambda match: bytes((int(match.group(1), 16),)), text.encode())


def write(parsed: ParsedUrl) -> str:
    """The URL as text."""
    text = f"{parsed.scheme}:" if parsed.scheme else ""
    if parsed.opaque:
        text += parsed.opaque
    else:
        if parsed.has_authority:
            text += "//" + (f"{parsed.user}@" if parsed.user else "") + parsed.host
        text += escaped_path(parsed)
    text += f"?{parsed.query}" if parsed.query else ""
    return text + (f"#{parsed.fragment}" if parsed.fragment else "")


class UrlValue(OpaqueValue):
    __slots__ = ("parsed",)

    type_name: ClassVar[str] = "kubernetes.URL"
    go_name: ClassVar[str] = "cel.URL"

    def __init__(self, parsed: ParsedUrl) -> None:
        self.parsed = parsed

    def same_as(self, other: object) -> bool:
        if type(other) is not UrlValue:
            raise no_such_overload()
        return str(self) == str(other)

    def __str__(self) -> str:
        return write(self.parsed)


def url(text: str) -> UrlValue:
    """An absolute URL, or an absolute path."""
    try:
        parse_request_uri(text)
        return UrlValue(parse(text))
    except UrlError as error:
        raise CelEvaluationError(f"URL parse error during conversion from string: {error}") from None


def is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except UrlError:
        return False
    return True


_U = "kubernetes.URL"

FUNCTIONS: tuple[CelFunction, ...] = (
    function("url", overload("string_to_url", f"(string) -> {_U}", url)),
    function("getScheme", overload("url_get_scheme", f"{_U}.() -> string", lambda value: value.parsed.scheme)),
    function("getHost", overload("url_get_host", f"{_U}.() -> string", lambda value: value.parsed.host)),
    function(
        "getHostname",
        overload("url_get_hostname", f"{_U}.() -> string", lambda value: split_host(value.parsed.host)[0]),
    ),
    function(
        "getPort",
        overload("url_get_port", f"{_U}.() -> string", lambda value: split_host(value.parsed.host)[1]),
    ),
    function(
        "getEscapedPath",
        overload("url_get_escaped_path", f"{_U}.() -> string", lambda value: escaped_path(value.parsed)),
    ),
    function(
        "getQuery",
        overload("url_get_query", f"{_U}.() -> map(string, list(string))", lambda value: query_values(value.parsed)),
    ),
    function("isURL", overload("is_url_string", "(string) -> bool", is_url)),
)
