"""What can be wrong with a field, and with a name, in the API server's words; values are written as it writes them.

Paths are plain texts: ``child(path, "name")``, ``index(path, 3)``, ``key(path, "cpu")``. ``served_resource.py`` has
InvalidField itself.

The functions about names take a text as DNS label, subdomain or port name, and return the validation errors, none if
the name is good. Label keys and values: ``kubesched.k8s.model.selectors``.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.served_resource import InvalidField


def child(path: str, *names: str) -> str:
    return ".".join((path, *names)) if path else ".".join(names)


def index(path: str, position: int) -> str:
    return f"{path}[{position}]"


def key(path: str, name: str) -> str:
    return f"{path}[{name}]"


def required(path: str, detail: str = "") -> InvalidField:
    return InvalidField("FieldValueRequired", path, _with_detail("Required value", detail))


def invalid(path: str, value: Any, detail: str) -> InvalidField:
    return InvalidField("FieldValueInvalid", path, _with_detail(f"Invalid value: {show(value)}", detail))


def unsupported(path: str, value: Any, supported: Iterable[str]) -> InvalidField:
    listed = ", ".join(f'"{one}"' for one in supported)
    detail = f": supported values: {listed}" if listed else ""
    return InvalidField("FieldValueNotSupported", path, f"Unsupported value: {show(value)}{detail}")


def duplicate(path: str, value: Any) -> InvalidField:
    return InvalidField("FieldValueDuplicate", path, f"Duplicate value: {show(value)}")


def forbidden(path: str, detail: str) -> InvalidField:
    return InvalidField("FieldValueForbidden", path, f"Forbidden: {detail}")


def internal(path: str, detail: str) -> InvalidField:
    """The check itself failed."""
    return InvalidField("InternalError", path, f"Internal error: {detail}")


def missing(path: str, value: Any, detail: str = "") -> InvalidField:
    """The field names something that is not there."""
    return InvalidField("FieldValueNotFound", path, _with_detail(f"Not found: {show(value)}", detail))


def too_many(path: str, n_found: int, n_most: int) -> InvalidField:
    noun = "item" if n_most == 1 else "items"
    return InvalidField("FieldValueTooMany", path, f"Too many: {n_found}: must have at most {n_most} {noun}")


def too_long(path: str, n_most: int) -> InvalidField:
    return InvalidField("FieldValueTooLong", path, f"Too long: may not be more than {n_most} bytes")


def all_invalid(path: str, value: Any, details: Iterable[str]) -> list[InvalidField]:
    return [invalid(path, value, detail) for detail in details]


def immutable(path: str, value: Any) -> InvalidField:
    return invalid(path, value, "field is immutable")


def show(value: Any) -> str:
    """A value within a message: texts quoted, all else as JSON."""
    if isinstance(value, str):
        return quoted(value)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&":  # as Go's encoder writes them
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


NameRule = Callable[[str], tuple[str, ...]]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_ALNUM_ENDS = "and must start and end with an alphanumeric character"
_LABEL_TEXT = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALNUM_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_TEXT = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ALNUM_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_OLDER_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_OLDER_LABEL_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_OLDER_LABEL}')"
)
_LONGEST_DRIVER_NAME = 63
_UNDERSCORED_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED = rf"{_UNDERSCORED_LABEL}(\.{_UNDERSCORED_LABEL})*"
_UNDERSCORED_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    f"{_ALNUM_ENDS} (e.g. 'example.com', regex used for validation is '{_UNDERSCORED}')"
)


def _limited(text: str, most: int, pattern: str, rule: str) -> tuple[str, ...]:
    problems = []
    if len(text.encode()) > most:
        problems.append(f"must be no more than {most} characters")
    if not re.fullmatch(pattern, text):
        problems.append(rule)
    return tuple(problems)


def dns_label_errors(text: str) -> tuple[str, ...]:
    if "." in text and re.fullmatch(_SUBDOMAIN, text):
        too_long = (f"must be no more than {63} characters",) if len(text) > 63 else ()
        return (*too_long, "must not contain dots")
    return _limited(text, 63, _LABEL, _LABEL_TEXT)


def dns_1035_label_errors(text: str) -> tuple[str, ...]:
    return _limited(text, 63, _OLDER_LABEL, _OLDER_LABEL_TEXT)


def dns_subdomain_errors(text: str) -> tuple[str, ...]:
    return _limited(text, 253, _SUBDOMAIN, _SUBDOMAIN_TEXT)


def underscored_subdomain_errors(text: str) -> tuple[str, ...]:
    return _limited(text, 253, _UNDERSCORED, _UNDERSCORED_TEXT)


def address_errors(text: str, path: str) -> list[InvalidField]:
    """An IP address, of either version."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return [invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


def path_segment_errors(text: str) -> tuple[str, ...]:
    """Names of RBAC objects: anything that can stand between two slashes of a path."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{sign}'" for sign in ("/", "%") if sign in text)


def port_name_errors(text: str) -> tuple[str, ...]:
    problems = []
    if len(text) > 15:
        problems.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text and (text[0] == "-" or text[-1] == "-"):
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


def any_name(_: str) -> tuple[str, ...]:
    return ()


def port_number_errors(port: int) -> tuple[str, ...]:
    return () if 1 <= port <= 65535 else ("must be between 1 and 65535, inclusive",)


def with_prefix_allowed(name: str) -> str:
    """What a generateName is checked as: a dash at its end stands before the random part."""
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def driver_name_errors(name: str, path: str) -> list[InvalidField]:
    """The name of a CSI or DRA driver: a subdomain of at most 63 bytes, capitals allowed."""
    if not name:
        return [required(path)]
    found = [too_long(path, _LONGEST_DRIVER_NAME)] if len(name.encode()) > _LONGEST_DRIVER_NAME else []
    return found + all_invalid(path, name, dns_subdomain_errors(name.lower()))
