"""JSON and YAML text into plain values, as Go's decoders take it, with its messages; and YAML of answers.

The fast parser reads what is good, also of YAML, since JSON is YAML too; broken characters are replaced as in Go. For
JSON that it refuses, a scanner follows the states of Go's until the text goes wrong, and finds the words. YAML is
written with the real server's way of quoting.

Fields that were given twice in one object only the text tells, so it is read again for them, and only when
fieldValidation asks for it. The words and their order are the real server's: JSON is told in the order of the text,
YAML by lines. Next: `kubernetes_yaml`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from kubesched.k8s.model.kubernetes_yaml import (
    BODY_BOUNDS,
    BROKEN_VALUES,
    JsonField,
    KubernetesLoader,
    NotJsonError,
    YamlBoundError,
    json_fields,
    load_document,
    needs_quotes,
    repeated_keys,
)
from kubesched.playground.apiserver.go_text import in_source, quoted

_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_LITERALS = {b"t"[0]: b"true", b"f"[0]: b"false", b"n"[0]: b"null"}
_DEEPEST = 10_000


class _WrongTextError(Exception):
    """Where the text goes wrong, in Go's words."""


def go_json_error(data: bytes) -> str:
    """What Go's decoder would say about this text; "" if it would take it."""
    try:
        _Scanner(data).scan()
    except _WrongTextError as error:
        return str(error)
    return ""


class _Scanner:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def scan(self) -> None:
        open_brackets: list[int] = []
        while True:
            self._begin_value()
            opened = self._value()
            if opened:
                open_brackets.append(opened)
                if len(open_brackets) > _DEEPEST:
                    raise _WrongTextError("exceeded max depth")
                if not self._opens_empty(opened):
                    continue
            while open_brackets and self._closes(open_brackets[-1]):
                open_brackets.pop()
            if not open_brackets:
                break
        if self._peek_after_space() is not None:
            raise self._wrong("after top-level value")

    def _begin_value(self) -> None:
        if self._peek_after_space() is None:
            raise _WrongTextError("unexpected end of JSON input")

    def _value(self) -> int:
        """Reads a scalar, or the opening bracket of a container, which is returned."""
        sign = self._data[self._at]
        if sign in b"{[":
            self._at += 1
            return sign
        if sign == b'"'[0]:
            self._string()
        elif sign in _LITERALS:
            self._literal(_LITERALS[sign])
        elif sign == b"-"[0] or sign in _DIGITS:
            self._number()
        else:
            raise self._wrong("looking for beginning of value")
        return 0

    def _opens_empty(self, bracket: int) -> bool:
        """Whether the container ends at once; in an object, reads the first key otherwise."""
        sign = self._peek_after_space()
        if sign is None:
            raise _WrongTextError("unexpected end of JSON input")
        if bracket == b"["[0]:
            return sign == b"]"[0]
        if sign == b"}"[0]:
            return True
        self._key()
        return False

    def _closes(self, bracket: int) -> bool:
        """After a value: whether its container ends here; reads on to the next value otherwise."""
        sign = self._peek_after_space()
        if sign is None:
            raise _WrongTextError("unexpected end of JSON input")
        in_object = bracket == b"{"[0]
        if sign == (b"}"[0] if in_object else b"]"[0]):
            self._at += 1
            return True
        if sign != b","[0]:
            raise self._wrong("after object key:value pair" if in_object else "after array element")
        self._at += 1
        if in_object:
            if self._peek_after_space() is None:
                raise _WrongTextError("unexpected end of JSON input")
            self._key()
        return False

    def _key(self) -> None:
        if self._data[self._at] != b'"'[0]:
            raise self._wrong("looking for beginning of object key string")
        self._string()
        sign = self._peek_after_space()
        if sign is None:
            raise _WrongTextError("unexpected end of JSON input")
        if sign != b":"[0]:
            raise self._wrong("after object key")
        self._at += 1

    def _string(self) -> None:
        self._at += 1
        while (sign := self._next()) != b'"'[0]:
            if sign == b"\\"[0]:
                self._escape()
            elif sign < 0x20:
                raise self._wrong("in string literal", back=1)

    def _escape(self) -> None:
        sign = self._next()
        if sign == b"u"[0]:
            for _ in range(4):
                if self._next() not in _HEX:
                    raise self._wrong("in \\u hexadecimal character escape", back=1)
        elif sign not in b'"\\/bfnrt':
            raise self._wrong("in string escape code", back=1)

    def _literal(self, word: bytes) -> None:
        self._at += 1
        for wanted in word[1:]:
            # a literal that just ends is wrong at the space that Go puts behind the text
            found = self._data[self._at] if self._at < len(self._data) else b" "[0]
            if found != wanted:
                raise _WrongTextError(
                    f"invalid character {_quoted(found)} in literal {word.decode()} (expecting '{chr(wanted)}')"
                )
            self._at += 1

    def _number(self) -> None:
        if self._data[self._at] == b"-"[0]:
            self._at += 1
            self._digit("in numeric literal")
        else:
            self._at += 1
        if self._data[self._at - 1] != b"0"[0]:
            self._digits()
        if self._peek() == b"."[0]:
            self._at += 1
            self._digit("after decimal point in numeric literal")
            self._digits()
        if self._peek() in (b"e"[0], b"E"[0]):
            self._at += 1
            if self._peek() in (b"+"[0], b"-"[0]):
                self._at += 1
            self._digit("in exponent of numeric literal")
            self._digits()

    def _digit(self, where: str) -> None:
        sign = self._peek()
        if sign is None:
            raise _WrongTextError("unexpected end of JSON input")
        if sign not in _DIGITS:
            raise self._wrong(where)
        self._at += 1

    def _digits(self) -> None:
        while self._at < len(self._data) and self._data[self._at] in _DIGITS:
            self._at += 1

    def _peek(self) -> int | None:
        return self._data[self._at] if self._at < len(self._data) else None

    def _peek_after_space(self) -> int | None:
        while self._at < len(self._data) and self._data[self._at] in _SPACE:
            self._at += 1
        return self._peek()

    def _next(self) -> int:
        if self._at >= len(self._data):
            raise _WrongTextError("unexpected end of JSON input")
        self._at += 1
        return self._data[self._at - 1]

    def _wrong(self, where: str, back: int = 0) -> _WrongTextError:
        return _WrongTextError(f"invalid character {_quoted(self._data[self._at - back])} {where}")


_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\a": "\\a", "\\": "\\\\"}


def _quoted(sign: int) -> str:
    """A byte as Go quotes the character of that number."""
    character = chr(sign)
    if character == "'":
        return "'\\''"
    if character == '"':
        return "'\"'"
    if character in _ESCAPES:
        return f"'{_ESCAPES[character]}'"
    if sign < 0x20 or sign == 0x7F:
        return f"'\\x{sign:02x}'"
    return f"'\\u{sign:04x}'" if 0x80 <= sign < 0xA0 else f"'{character}'"


_decode = msgspec.json.Decoder().decode


def read_json(data: bytes) -> Any:
    """The value; ValueError with Go's message if the text is no JSON."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        error = go_json_error(data)
    except RecursionError:
        raise ValueError("exceeded max depth") from None
    if error:
        raise ValueError(error)
    # Go takes halves of surrogate pairs and broken UTF-8 within strings, and puts a replacement character there
    try:
        return _repaired(json.loads(data.decode(errors="replace")))
    except (ValueError, RecursionError):
        raise ValueError("invalid JSON") from None


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_repaired(name): _repaired(item) for name, item in value.items()}
    return [_repaired(item) for item in value] if isinstance(value, list) else value


class YamlTextError(ValueError):
    """The text is no YAML, or holds what JSON cannot hold."""


def load_yaml(data: bytes) -> Any:
    """The value of the first document."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value = load_document(data, BODY_BOUNDS)
        return msgspec.json.decode(msgspec.json.encode(value))  # nothing is shared, whatever aliases repeat
    except YamlBoundError as error:
        raise YamlTextError(f"error converting YAML to JSON: yaml: {error.problem}") from None
    except NotJsonError as error:
        raise YamlTextError(str(error.problem)) from None
    except yaml.reader.ReaderError as error:
        raise YamlTextError(f"error converting YAML to JSON: yaml: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError) if error.problem_mark else 1
        raise YamlTextError(f"error converting YAML to JSON: yaml: line {line}: {error.problem}") from None
    except (yaml.YAMLError, msgspec.DecodeError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise YamlTextError(" ".join(str(error).split())) from None


class _ServerDumper(yaml.SafeDumper):
    """Quotes as the real server does: texts that would be read as something else in double quotes."""

    def ignore_aliases(self, _: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        style: str | None = "|"
    else:
        style = '"' if needs_quotes(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_ServerDumper.add_representer(str, _represent_text)


def dump_yaml(value: Any) -> bytes:
    """The value as YAML."""
    text: str = yaml.dump(value, Dumper=_ServerDumper, default_flow_style=False, allow_unicode=True, width=2**20)
    return text.encode()


_MOST_FINDINGS = 100


@dataclass(frozen=True, slots=True)
class Repeated:
    """What a body gives twice.

    ``walk`` has all fields in the order of the JSON text, each with whether it was there before, and is empty
    when nothing repeats; ``yaml_error`` is what Go's YAML decoder says.
    """

    walk: list[JsonField] = field(default_factory=list)
    yaml_error: str = ""

    def findings(self, unknown: Iterable[str]) -> list[str]:
        """All that is wrong with the fields, given those that the kind does not know."""
        if not self.walk:
            told = [self.yaml_error] if self.yaml_error else []
            return [*told, *(unknown_field(path) for path in list(dict.fromkeys(unknown))[:_MOST_FINDINGS])]
        return self._in_order(frozenset(unknown))[:_MOST_FINDINGS]

    def _in_order(self, unknown: frozenset[str]) -> list[str]:
        found: dict[str, None] = {}
        skipped = ""  # nobody looks into a field that is not known
        for path, _, is_repeated in self.walk:
            if skipped and path.startswith((skipped + ".", skipped + "[")):
                continue
            skipped = ""
            if path in unknown:
                found[unknown_field(path)] = None
                skipped = path
            elif is_repeated:
                found[f"duplicate field {quoted(path)}"] = None
        return list(found)


NOTHING_REPEATED = Repeated()


def unknown_field(path: str) -> str:
    return f"unknown field {quoted(path)}"


def repeated_in_json(data: bytes) -> Repeated:
    """``data`` has been read as JSON before."""
    fields = json_fields(data.decode(errors="replace"))
    return Repeated(fields) if fields else NOTHING_REPEATED


def repeated_in_yaml(data: bytes) -> Repeated:
    """``data`` has been read as YAML before."""
    try:
        if not repeated_in_json(data).walk:
            return NOTHING_REPEATED  # JSON is YAML too, and much sooner looked through
    except (ValueError, RecursionError):
        pass
    reading = KubernetesLoader(data)

    def key_of(node: yaml.Node) -> object:
        return reading.construct_object(node) if isinstance(node, yaml.ScalarNode) else None

    def identity(node: yaml.Node) -> object:
        key = key_of(node)
        return type(key), key

    try:
        document = reading.get_node() if reading.check_node() else None
        found = [] if document is None else repeated_keys(document, identity)
        lines = [
            f"line {at.start_mark.line + 1}: key {in_source(key_of(key))} already set in map" for _, key, at in found
        ]
    except (yaml.YAMLError, *BROKEN_VALUES):
        return NOTHING_REPEATED
    finally:
        reading.dispose()
    if not lines:
        return NOTHING_REPEATED
    return Repeated(yaml_error="yaml: unmarshal errors:\n" + "\n".join(f"  {line}" for line in lines))
