"""URLs: url(), isURL() and the parts of a URL, by the rules of Go's net/url.

Next: `url_text` reads them.
"""

from __future__ import annotations

from typing import ClassVar

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.library import url_text
from kubesched.k8s.cel.library.url_text import ParsedUrl, UrlError
from kubesched.k8s.cel.values.opaque import OpaqueValue


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
        return url_text.write(self.parsed)


def url(text: str) -> UrlValue:
    """An absolute URL, or an absolute path."""
    try:
        url_text.parse_request_uri(text)
        return UrlValue(url_text.parse(text))
    except UrlError as error:
        raise CelEvaluationError(f"URL parse error during conversion from string: {error}") from None


def is_url(text: str) -> bool:
    try:
        url_text.parse_request_uri(text)
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
        overload("url_get_hostname", f"{_U}.() -> string", lambda value: url_text.split_host(value.parsed.host)[0]),
    ),
    function(
        "getPort",
        overload("url_get_port", f"{_U}.() -> string", lambda value: url_text.split_host(value.parsed.host)[1]),
    ),
    function(
        "getEscapedPath",
        overload("url_get_escaped_path", f"{_U}.() -> string", lambda value: url_text.escaped_path(value.parsed)),
    ),
    function(
        "getQuery",
        overload(
            "url_get_query", f"{_U}.() -> map(string, list(string))", lambda value: url_text.query_values(value.parsed)
        ),
    ),
    function("isURL", overload("is_url_string", "(string) -> bool", is_url)),
)
