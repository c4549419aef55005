"""Label selectors and node selectors, compiled once and asked often, and label selectors as they are typed.

Both kinds come down to `Requirement`s: an operator on one label's value. A requirement can be asked about one value
(`matches`), which is all that the node table needs: it asks once per distinct value, not once per node.

A selector with a validation error in it (a value that is no integer under `Gt`, say) raises `SelectorError` where it is
compiled, in Kubernetes' words; node selectors keep the validation error inside the term, because one good term is
enough (`NodeTerm.error`). What is wrong with the form of a key or a value, `label_key_errors` and `label_value_errors`
say.

`parse_selector` reads what `kubectl -l` and the API's `labelSelector` take, `app=web,tier in (front,back),!legacy`, and
refuses the rest in the same words. `str()` of what it returns is the shortest such text and reads back as the same
selector: requirements stand in the order of their keys, and `a==x` or `a in (x)` becomes `a=x`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from kubesched.k8s.model.meta import LabelSelector

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NAME_EXAMPLES = ("MyName", "my.name", "123-abc")
_VALUE = f"({_NAME})?"
_VALUE_RULE = f"a valid label must be an empty string or {_NAME_RULE.removeprefix('must ')}"
_VALUE_EXAMPLES = ("MyValue", "my_value", "12345")
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)

_LONGEST_NAME = 63
_LONGEST_SUBDOMAIN = 253


@lru_cache(maxsize=8192)
def label_key_errors(key: str) -> tuple[str, ...]:
    """Also the rule for what Kubernetes calls a qualified name."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        rule = _with_pattern(_NAME_RULE, _NAME, *_NAME_EXAMPLES)
        return (f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors.extend(f"prefix part {error}" for error in _subdomain_errors(prefix))
    if not name:
        errors.append("name part must be non-empty")
    elif _n_bytes(name) > _LONGEST_NAME:
        errors.append(f"name part must be no more than {_LONGEST_NAME} bytes")
    if not re.fullmatch(_NAME, name):
        errors.append(f"name part {_with_pattern(_NAME_RULE, _NAME, *_NAME_EXAMPLES)}")
    return tuple(errors)


@lru_cache(maxsize=8192)
def label_value_errors(value: str) -> tuple[str, ...]:
    errors = []
    if _n_bytes(value) > _LONGEST_NAME:
        errors.append(f"must be no more than {_LONGEST_NAME} bytes")
    if not re.fullmatch(_VALUE, value):
        errors.append(_with_pattern(_VALUE_RULE, _VALUE, *_VALUE_EXAMPLES))
    return tuple(errors)


def _subdomain_errors(text: str) -> list[str]:
    errors = []
    if _n_bytes(text) > _LONGEST_SUBDOMAIN:
        errors.append(f"must be no more than {_LONGEST_SUBDOMAIN} bytes")
    if not re.fullmatch(_SUBDOMAIN, text):
        errors.append(_with_pattern(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return errors


def _with_pattern(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def _n_bytes(text: str) -> int:
    return len(text.encode())


Labels = Mapping[str, str]

NODE_NAME_FIELD = "metadata.name"
HOSTNAME_LABEL = "kubernetes.io/hostname"
"""By which volumes and terms mostly mean one node."""

_LONGEST_INT64 = len(str(2**63))
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


class SelectorError(KubeschedError, ValueError):
    """A selector cannot be understood."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One label, one operator, its values."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Whether a label with this value (None: no such label) meets the requirement."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt":
                number = _integer(value)
                return number is not None and number > int(self.values[0])
            case _:
                number = _integer(value)
                return number is not None and number < int(self.values[0])

    def __str__(self) -> str:
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "In" | "NotIn" if len(self.values) == 1:
                sign = "=" if self.operator == "In" else "!="
                return f"{self.key}{sign}{self.values[0]}"
            case "In" | "NotIn":
                return f"{self.key} {self.operator.lower()} ({','.join(sorted(self.values))})"
            case "Gt":
                return f"{self.key}>{self.values[0]}"
            case _:
                return f"{self.key}<{self.values[0]}"


@dataclass(frozen=True)
class Selector:
    """All requirements must hold. `nothing` is the selector of a missing label selector: it matches no object."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Labels) -> bool:
        if self.nothing:
            return False
        get = labels.get
        return all(r.matches(get(r.key)) for r in self.requirements)

    @property
    def is_everything(self) -> bool:
        return not self.nothing and not self.requirements

    def __str__(self) -> str:
        return ",".join(str(r) for r in self.requirements)


NOTHING = Selector(nothing=True)
EVERYTHING = Selector()


def from_label_selector(selector: LabelSelector | None) -> Selector:
    """None selects nothing, an empty selector everything."""
    if selector is None:
        return NOTHING
    requirements = [requirement(key, "In", (value,)) for key, value in sorted((selector.match_labels or {}).items())]
    for expression in selector.match_expressions or ():
        if expression.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
        requirements.append(requirement(expression.key, expression.operator, expression.values or None))
    return Selector(tuple(sorted(requirements, key=lambda found: found.key)))


def from_labels(labels: Labels | None) -> Selector:
    """Every one of these labels, with these values."""
    return Selector(tuple(Requirement(key, "In", (value,)) for key, value in sorted((labels or {}).items())))


def requirement(key: str, operator: str, values: Iterable[str] | None) -> Requirement:
    """A requirement that is known to make sense."""
    found = None if values is None else tuple(values)
    problems = [f"key: {_invalid(key, '; '.join(wrong))}"] if (wrong := label_key_errors(key)) else []
    problems.extend(_errors_for_operator(operator, found))
    for index, value in enumerate(found or ()):
        if wrong := label_value_errors(value):
            problems.append(f"values[{index}][{key}]: {_invalid(value, '; '.join(wrong))}")
    if problems:
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return Requirement(key, operator, found or ())


def _errors_for_operator(operator: str, values: tuple[str, ...] | None) -> list[str]:
    problem = ""
    match operator:
        case "In" | "NotIn" if not values:
            problem = "for 'in', 'notin' operators, values set can't be empty"
        case "Exists" | "DoesNotExist" if values:
            problem = "values set must be empty for exists and does not exist"
        case "Gt" | "Lt" if len(values or ()) != 1:
            problem = "for 'Gt', 'Lt' operators, exactly one value is required"
        case _ if operator not in _OPERATORS:
            supported = ", ".join(f'"{name}"' for name in _OPERATORS)
            return [f"operator: Unsupported value: {json.dumps(operator)}: supported values: {supported}"]
    found = [f"values: {_invalid(values, problem)}"] if problem else []
    if operator in ("Gt", "Lt"):
        problem = "for 'Gt', 'Lt' operators, the value must be an integer"
        wrong = ((index, value) for index, value in enumerate(values or ()) if _integer(value) is None)
        found.extend(f"values[{index}]: {_invalid(value, problem)}" for index, value in wrong)
    return found


def _invalid(value: str | tuple[str, ...] | None, problem: str) -> str:
    shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"Invalid value: {shown}: {problem}"


# -- Node selectors ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector: labels and fields, all of which must hold. An erroneous term matches no node."""

    labels: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]
    error: str | None = None

    def matches(self, labels: Labels, name: str) -> bool:
        if self.error is not None:
            return False
        return all(r.matches(labels.get(r.key)) for r in self.labels) and all(
            r.matches(name if r.key == NODE_NAME_FIELD else "") for r in self.fields
        )


@dataclass(frozen=True)
class CompiledNodeSelector:
    """Terms of which one must match. No term, no node."""

    terms: tuple[NodeTerm, ...]

    def matches(self, node: Node) -> bool:
        return any(term.matches(node.labels, node.name) for term in self.terms)

    @cached_property
    def errors(self) -> tuple[str, ...]:
        return tuple(term.error for term in self.terms if term.error is not None)


def from_node_selector(selector: NodeSelector) -> CompiledNodeSelector:
    return CompiledNodeSelector(
        tuple(compile_node_term(term) for term in selector.node_selector_terms if not _is_empty(term))
    )


def compile_node_term(term: NodeSelectorTerm) -> NodeTerm:
    try:
        labels = tuple(requirement(e.key, e.operator, e.values) for e in term.match_expressions or ())
        fields = tuple(_field_requirement(e) for e in term.match_fields or ())
    except SelectorError as failure:
        return NodeTerm((), (), error=str(failure))
    return NodeTerm(labels, fields)


def compile_preferred_terms(terms: Iterable[PreferredSchedulingTerm]) -> tuple[tuple[NodeTerm, int], ...]:
    """Terms with their weights; terms that cannot change a score are left out."""
    return tuple(
        (compile_node_term(term.preference), term.weight)
        for term in terms
        if term.weight and not _is_empty(term.preference)
    )


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _field_requirement(expression: NodeSelectorRequirement) -> Requirement:
    if expression.operator not in ("In", "NotIn"):
        problem = 'supported values: "In", "NotIn"'
        raise SelectorError(f"operator: Unsupported value: {json.dumps(expression.operator)}: {problem}")
    if len(expression.values or ()) != 1:
        raise SelectorError(f"values: {_invalid(expression.values, 'must have one element')}")
    return Requirement(expression.key, expression.operator, expression.values or ())


def _integer(text: str | None) -> int | None:
    """An int64 as Go's ParseInt reads it: no blanks, no underscores."""
    if text is None:
        return None
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > _LONGEST_INT64:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<sign>==|!=|[=!(),<>])|(?P<word>[^ \t\r\n=!(),<>\0]+))")
_TYPED_OPERATORS = {"=": "In", "==": "In", "in": "In", "!=": "NotIn", "notin": "NotIn", ">": "Gt", "<": "Lt"}
_EXPECTED_OPERATOR = "in, notin, =, ==, !=, gt, lt"
_SIGNS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_END = ""


def parse_selector(text: str) -> Selector:
    """The selector that a text stands for; an empty text selects everything."""
    return _SelectorParser(text).selector()


class _SelectorParser:
    """Reads from left to right, one token ahead. The end of the text is the empty token."""

    def __init__(self, text: str) -> None:
        self._tokens = [
            found["sign"] or found["word"] for found in _TOKEN.finditer(text.partition("\0")[0].rstrip(" \t\r\n"))
        ]
        self._position = 0

    def selector(self) -> Selector:
        requirements: list[Requirement] = []
        while self._next != _END:
            if not _is_word(self._next) and self._next != "!":
                raise SelectorError(f"found '{self._next}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            self._separator()
        return Selector(tuple(sorted(requirements, key=lambda found: found.key)))

    @property
    def _next(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else _END

    def _take(self) -> str:
        token = self._next
        self._position += 1
        return token

    def _separator(self) -> None:
        token = self._take()
        if token not in (",", _END):
            raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
        if token == "," and not _is_word(self._next) and self._next != "!":
            raise SelectorError(f"found '{self._next}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key = self._take()
        is_absent = key == "!"
        if is_absent:
            key = self._take()
        if not _is_word(key):
            raise SelectorError(f"found '{key}', expected: identifier")
        if errors := label_key_errors(key):
            raise SelectorError(f"<nil>: Invalid value: {json.dumps(key, ensure_ascii=False)}: {'; '.join(errors)}")
        if is_absent:
            return requirement(key, "DoesNotExist", ())
        if self._next in (",", _END):
            return requirement(key, "Exists", ())
        token = self._take()
        if token not in _TYPED_OPERATORS:
            raise SelectorError(f"found '{token}', expected: {_EXPECTED_OPERATOR}")
        values = self._set_of_values() if token in ("in", "notin") else {self._single_value()}
        return requirement(key, _TYPED_OPERATORS[token], sorted(values))

    def _single_value(self) -> str:
        if self._next in (",", _END):
            return ""
        token = self._take()
        if not _is_word(token):
            raise SelectorError(f"found '{token}', expected: identifier")
        return token

    def _set_of_values(self) -> set[str]:
        """Values in parentheses; nothing before, after or between commas is the empty value."""
        if (token := self._take()) != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        if self._next not in (")", ",") and not _is_word(self._next):
            raise SelectorError(f"found '{self._next}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            values.add(self._take() if _is_word(self._next) else "")
            token = self._take()
            if token == ")":
                return values
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or ')'")
            if self._next not in (")", ",") and not _is_word(self._next):
                raise SelectorError(f"found '{self._next}', expected: ',', or identifier")


def _is_word(token: str) -> bool:
    return token != _END and token not in _SIGNS
