"""The form of label keys and label values, with Kubernetes' messages.

Each function returns what is wrong, an empty tuple if nothing is. Next: `selectors`, which refuses what is wrong here.
"""

from __future__ import annotations

import re
from functools import lru_cache

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
