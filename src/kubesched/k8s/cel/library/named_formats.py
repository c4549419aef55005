"""format.dns1123Label() and the other formats that Kubernetes names, and validate().

validate() gives an optional list of complaints, none for a text that is fine.

Next: `environment` puts all libraries together.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.errors import no_such_overload
from kubesched.k8s.cel.library import urls
from kubesched.k8s.cel.library.times import parse_timestamp
from kubesched.k8s.cel.library.urls import UrlError
from kubesched.k8s.cel.values.scalars import NONE, CelOptional, OpaqueValue

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
        urls.parse_request_uri(text)
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

FUNCTIONS: tuple[CelFunction, ...] = (
    function("validate", overload("format-validate", f"{_F}.(string) -> optional(list(string))", validate)),
    function("format.named", overload("format-named", f"(string) -> optional({_F})", _named)),
    *(
        function(f"format.{name}", overload(f"format.{name}", f"() -> {_F}", _constant(named)))
        for name, named in FORMATS.items()
    ),
)
