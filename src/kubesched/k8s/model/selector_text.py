"""Label selectors as they are typed: `app=web,tier in (front,back),!legacy,size>3`.

`parse_selector` reads what `kubectl -l` and the API's `labelSelector` take, and refuses the rest in the same words.
`str()` of what it returns is the shortest such text and reads back as the same selector: requirements stand in the
order of their keys, and `a==x` or `a in (x)` becomes `a=x`.

Next: `selectors`, for what a selector is.
"""

from __future__ import annotations

import json
import re

from kubesched.k8s.model.label_syntax import label_key_errors
from kubesched.k8s.model.selectors import Requirement, Selector, SelectorError, requirement

_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<sign>==|!=|[=!(),<>])|(?P<word>[^ \t\r\n=!(),<>\0]+))")
_OPERATORS = {"=": "In", "==": "In", "in": "In", "!=": "NotIn", "notin": "NotIn", ">": "Gt", "<": "Lt"}
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
        if token not in _OPERATORS:
            raise SelectorError(f"found '{token}', expected: {_EXPECTED_OPERATOR}")
        values = self._set_of_values() if token in ("in", "notin") else {self._single_value()}
        return requirement(key, _OPERATORS[token], sorted(values))

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
