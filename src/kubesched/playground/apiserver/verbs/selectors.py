"""Label and field selectors from query strings, with the real server's error messages.

``parse_labels`` and ``parse_fields`` give a predicate on a stored object's labels or fields. Used by lists, watches
and deletions of collections.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kubesched.playground.apiserver.errors import bad_request
from kubesched.playground.apiserver.kinds.kind import ServedResource

Matcher = Callable[[Mapping[str, str]], bool]

_TOKEN = re.compile(r"\s*(==|!=|=|!|<|>|,|\(|\)|[^\s=!<>,()]+)")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SPECIAL = frozenset({"==", "!=", "=", "!", "<", ">", ",", "(", ")"})
_SAYS_WHICH_KIND = "resource.k8s.io"
"""The group whose refusals of unknown fields name the kind."""
_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_PREFIX_RULE = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One term of a label selector."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        present = self.key in labels
        if self.operator == "exists":
            return present
        if self.operator == "!":
            return not present
        if self.operator in ("!=", "notin"):
            return not present or labels[self.key] not in self.values
        if not present:
            return False
        if self.operator in (">", "<"):
            return self._compares(labels[self.key])
        return labels[self.key] in self.values

    def _compares(self, value: str) -> bool:
        (bound,) = self.values
        if not re.fullmatch(r"[+-]?\d+", value):
            return False
        return int(value) > int(bound) if self.operator == ">" else int(value) < int(bound)


class _LabelParser:
    """Reads the terms one after the other, as the real server's parser does."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text.rstrip())  # blanks before no token are looked through again and again
        self._at = 0

    def parse(self) -> list[LabelRequirement]:
        found: list[LabelRequirement] = []
        while True:
            token = self._peek()
            if token == "":
                return found
            if token in _SPECIAL and token != "!":
                raise bad_request(f"found '{token}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            after = self._next()
            if after == "":
                return found
            if after != ",":
                raise bad_request(f"found '{after}', expected: ',' or 'end of string'")
            follower = self._peek()
            if follower != "!" and (follower in _SPECIAL or follower == ""):
                raise bad_request(f"found '{follower}', expected: identifier after ','")

    def _requirement(self) -> LabelRequirement:
        negated = self._peek() == "!"
        if negated:
            self._next()
        key = self._next()
        if key == "" or key in _SPECIAL:
            raise bad_request(f"unable to parse requirement: found '{key}', expected: identifier")
        _check_key(key)
        if negated or self._peek() in ("", ","):
            return LabelRequirement(key, "!" if negated else "exists")
        operator = self._operator()
        values = self._set() if operator in ("in", "notin") else frozenset({self._single()})
        _check_values(key, operator, values)
        return LabelRequirement(key, operator, values)

    def _operator(self) -> str:
        token = self._next()
        operator = {"=": "=", "==": "=", "!=": "!=", "in": "in", "notin": "notin", ">": ">", "<": "<"}.get(token)
        if operator is None:
            raise bad_request(f"unable to parse requirement: found '{token}', expected: in, notin, =, ==, !=, gt, lt")
        return operator

    def _single(self) -> str:
        if self._peek() in ("", ","):
            return ""
        token = self._next()
        if token in _SPECIAL:
            raise bad_request(f"unable to parse requirement: found '{token}', expected: identifier")
        return token

    def _set(self) -> frozenset[str]:
        if (token := self._next()) != "(":
            raise bad_request(f"unable to parse requirement: found '{token}' expected: '('")
        values: set[str] = set()
        token = self._peek()
        if token != ")" and token != "," and (token == "" or token in _SPECIAL):
            raise bad_request(f"unable to parse requirement: found '{token}', expected: ',', ')' or identifier")
        while True:
            token = self._next()
            if token == ")":
                return frozenset(values or {""})
            if token == ",":
                values.add("")
                continue
            values.add(token)
            token = self._next()
            if token == ")":
                return frozenset(values)
            if token != ",":
                raise bad_request(f"unable to parse requirement: found '{token}', expected: ',' or ')'")

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    why = ""
    if slash and (not _SUBDOMAIN.fullmatch(prefix) or len(prefix) > 253):
        why = _PREFIX_RULE if prefix else "prefix part must be non-empty"
    elif not name:
        why = "name part must be non-empty"
    elif len(name) > 63:
        why = "name part must be no more than 63 bytes"
    elif not _NAME.fullmatch(name):
        why = _NAME_RULE
    if why:
        raise bad_request(f'unable to parse requirement: <nil>: Invalid value: "{key}": {why}')


def _check_values(key: str, operator: str, values: frozenset[str]) -> None:
    for at, value in enumerate(sorted(values)):
        if operator in (">", "<") and not re.fullmatch(r"[+-]?\d+", value):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise bad_request(f'unable to parse requirement: values[{at}]: Invalid value: "{value}": {why}')
        why = "must be no more than 63 bytes" if len(value) > 63 else "" if _VALUE.fullmatch(value) else _VALUE_RULE
        if why:
            raise bad_request(f'unable to parse requirement: values[{at}][{key}]: Invalid value: "{value}": {why}')


def parse_labels(text: str) -> Matcher | None:
    """The predicate of a label selector; None when it selects everything."""
    requirements = _LabelParser(text).parse()
    if not requirements:
        return None
    return lambda labels: all(requirement.matches(labels) for requirement in requirements)


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
