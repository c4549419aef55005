"""Label and field selectors from query strings, with the real server's error messages.

``parse_labels`` and ``parse_fields`` give a predicate on a stored object's labels or fields. Used by lists, watches
and deletions of collections.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from kubesched.k8s.model.selector_text import parse_selector
from kubesched.k8s.model.selectors import SelectorError
from kubesched.playground.apiserver.errors import bad_request
from kubesched.playground.apiserver.kinds.kind import ServedResource

Matcher = Callable[[Mapping[str, str]], bool]

_SAYS_WHICH_KIND = "resource.k8s.io"
"""The group whose refusals of unknown fields name the kind."""


def parse_labels(text: str) -> Matcher | None:
    """The predicate of a label selector; None when it selects everything."""
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    return None if selector.is_everything else selector.matches


def parse_fields(text: str, resource: ServedResource) -> Matcher | None:
    """The predicate of a field selector; None when it selects everything."""
    terms: list[tuple[str, bool, str]] = []
    for term in _split_fields(text):
        matched = re.match(r"([^=!]*?)(!=|==|=)(.*)", term, re.DOTALL)
        if matched is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        if not matched[1] and not matched[3]:
            continue
        terms.append((matched[1], matched[2] != "!=", _unescape(matched[3])))
    if not terms:
        return None
    supported = resource.selectable_fields({"metadata": {"name": "", "namespace": ""}, "spec": {}, "status": {}})
    for name, _, _ in terms:
        if name not in supported:
            raise _unsupported_field(name, supported, resource)
    return lambda fields: all((fields.get(name, "") == value) is equal for name, equal, value in terms)


def _split_fields(text: str) -> list[str]:
    """The terms between commas that are not escaped by a backslash."""
    return [term for term in re.findall(r"(?:[^,\\]|\\.|\\$)+", text, re.DOTALL) if term]


def _unescape(value: str) -> str:
    """A value without its backslashes, which may stand only before a backslash, a comma or an equals sign."""
    if wrong := re.search(r"\\([^\\,=]|$)", re.sub(r"\\[\\,=]", "", value)):
        raise bad_request(f"invalid field selector: invalid escape sequence: {wrong[0]}")
    if bare := re.search(r"[,=]", re.sub(r"\\[\\,=]", "", value)):
        raise bad_request(f"invalid field selector: unescaped character in value: {ord(bare[0])}")
    return re.sub(r"\\([\\,=])", r"\1", value)


def _unsupported_field(name: str, supported: Mapping[str, str], resource: ServedResource) -> Exception:
    if resource.is_custom or set(supported) - {"metadata.name", "metadata.namespace"}:
        if resource.group == _SAYS_WHICH_KIND:
            what = f"{resource.api_version}, Kind={resource.kind}"
            return bad_request(f"field label not supported for {what}: {name}")
        return bad_request(f"field label not supported: {name}")
    return bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')
