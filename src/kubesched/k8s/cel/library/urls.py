"""URLs, read and written as Go's net/url does, and the formats that Kubernetes names: format.dns1123Label() and so on.

url() and isURL() have the parts of a URL. validate() of a format gives an optional list of complaints, none for a text
that is fine; one of the formats is that of URLs.

Next: `library` puts all libraries together.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.kinds import CelFunction, function, overload
from kubesched.k8s.cel.library.times import parse_timestamp
from kubesched.k8s.cel.values import NONE, CelOptional, OpaqueValue, quote

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
    """The path as it may stand in a URL: as written if that is valid, escaped again otherwise."""
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


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_LABEL_KEY})?"
_UUID = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character"
)
_DNS1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_LABEL_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character"
)

Validator = Callable[[str], list[str]]


class NamedFormat(OpaqueValue):
    """A format by name. `pattern_size` is what the cost of a validation goes by."""

    __slots__ = ("name", "pattern_size", "validator")

    type_name: ClassVar[str] = "kubernetes.NamedFormat"
    go_name: ClassVar[str] = "cel.Format"
    is_hashable: ClassVar[bool] = False

    def __init__(self, name: str, validator: Validator, pattern_size: int) -> None:
        self.name = name
        self.validator = validator
        self.pattern_size = pattern_size

    def same_as(self, other: object) -> bool:
        if type(other) is not NamedFormat:
            raise no_such_overload()
        return self.name == other.name


def _rule(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters"] if len(text.encode()) > limit else []


def _dns1123_label(text: str) -> list[str]:
    complaints = _too_long(text, 63)
    if not re.fullmatch(_LABEL, text):
        is_subdomain = re.fullmatch(_SUBDOMAIN, text) is not None
        complaints.append("must not contain dots" if is_subdomain else _rule(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return complaints


def _dns1123_subdomain(text: str) -> list[str]:
    complaints = _too_long(text, 253)
    if not re.fullmatch(_SUBDOMAIN, text):
        complaints.append(_rule(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return complaints


def _dns1035_label(text: str) -> list[str]:
    complaints = _too_long(text, 63)
    if not re.fullmatch(_DNS1035_LABEL, text):
        complaints.append(_rule(_DNS1035_RULE, _DNS1035_LABEL, "my-name", "abc-123"))
    return complaints


def _qualified_name(text: str) -> list[str]:
    rule = _rule(_LABEL_KEY_RULE, _LABEL_KEY, "MyName", "my.name", "123-abc")
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {rule}{hint}"]
    complaints: list[str] = []
    if slash:
        troubles = _dns1123_subdomain(prefix) if prefix else ["must be non-empty"]
        complaints.extend(f"prefix part {trouble}" for trouble in troubles)
    if not name:
        complaints.append("name part must be non-empty")
    else:
        complaints.extend(f"name part {trouble}" for trouble in _too_long(name, 63))
    if not re.fullmatch(_LABEL_KEY, name):
        complaints.append(f"name part {rule}")
    return complaints


def _label_value(text: str) -> list[str]:
    complaints = _too_long(text, 63)
    if not re.fullmatch(_LABEL_VALUE, text):
        complaints.append(_rule(_LABEL_VALUE_RULE, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return complaints


def _as_prefix(validator: Validator) -> Validator:
    """For a name that something will be appended to: it may end in a dash."""

    def validate(text: str) -> list[str]:
        return validator(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)

    return validate


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except UrlError as error:
        return [str(error)]
    return []


def _is_date(text: str) -> bool:
    return parse_timestamp(f"{text}T00:00:00Z") is not None


def _is_datetime(text: str) -> bool:
    date, separator, clock = text.lower().partition("t")
    match = _CLOCK.fullmatch(clock)
    if not separator or match is None or not _is_date(date):
        return False
    return match.group(1) <= "23" and match.group(2) <= "59" and match.group(3) <= "59"


def _tested(test: Callable[[str], object], complaint: str) -> Validator:
    return lambda text: [] if test(text) else [complaint]


FORMATS: dict[str, NamedFormat] = {
    "dns1123Label": NamedFormat("DNS1123Label", _dns1123_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _dns1123_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _dns1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _as_prefix(_dns1123_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _as_prefix(_dns1123_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _as_prefix(_dns1035_label), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", _tested(re.compile(_UUID).fullmatch, "does not match the UUID format"), 78),
    "byte": NamedFormat("byte", _tested(re.compile(_BASE64).fullmatch, "invalid base64"), 84),
    "date": NamedFormat("date", _tested(_is_date, "invalid date"), 80),
    "datetime": NamedFormat("datetime", _tested(_is_datetime, "invalid datetime"), 80),
}


def _named(name: str) -> CelOptional:
    return CelOptional(FORMATS[name]) if name in FORMATS else NONE


def validate(named: NamedFormat, text: str) -> CelOptional:
    complaints = named.validator(text)
    return CelOptional(complaints) if complaints else NONE


def _constant(named: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: named


_F = "kubernetes.NamedFormat"

FORMAT_FUNCTIONS: tuple[CelFunction, ...] = (
    function("validate", overload("format-validate", f"{_F}.(string) -> optional(list(string))", validate)),
    function("format.named", overload("format-named", f"(string) -> optional({_F})", _named)),
    *(
        function(f"format.{name}", overload(f"format.{name}", f"() -> {_F}", _constant(named)))
        for name, named in FORMATS.items()
    ),
)
