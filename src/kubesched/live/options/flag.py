"""What a flag is: its name, the kind of its value, its default, and what kubesched does about it.

Values are read and printed as Go does: `15s`, `t`, `a,b`, `A=true,B=false`, `cache=4`. A text that is no value raises
`ValueError` in the words of Go, as users of kube-scheduler know them.

Next: `flag_table` for the flags themselves, `command` for how a command gets them.
"""

from __future__ import annotations

import csv
import ipaddress
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import click

from kubesched.k8s.model import quantity
from kubesched.scheduler.config import Duration


class FlagError(click.UsageError):
    """A flag, or a value of it, cannot be used. The message names the flag; the exit code is 2."""

    @classmethod
    def of(cls, messages: list[str]) -> FlagError:
        """Several errors at once, in the form in which Kubernetes lists them."""
        return cls(messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")


@dataclass(frozen=True, slots=True)
class FlagKind:
    """How the values of a flag are written."""

    name: str
    """What stands for the value in the help."""
    parse: Callable[[str], Any]
    """The value that a text stands for; raises `ValueError` with Go's words."""
    show: Callable[[Any], str]
    """A value as Go prints it."""
    is_list: bool = False
    """Whether a flag given twice adds to its values, which are a tuple. Else the last one counts."""
    if_bare: str | None = None
    """What a flag without a value means; None if it needs one."""


class FlagUse(Enum):
    USED = "used"
    WITHOUT_EFFECT = "no effect"
    """Accepted, such that the command line of a kube-scheduler works; a warning says why it changes nothing."""
    REFUSED = "refused"
    """Whoever gives it relies on something that is not there."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `default` is a value of the kind, not its text."""

    name: str
    kind: FlagKind
    default: Any
    help: str
    group: str = ""
    use: FlagUse = FlagUse.USED
    why: str = ""
    """Why it has no effect, or is refused."""
    fits: tuple[Any, ...] = ()
    """The values that ask for what kubesched does anyway, where that is not the default."""
    is_deprecated: bool = False
    yields_to_config: bool = False
    """Whether it is ignored when a configuration file is given."""

    @property
    def key(self) -> str:
        """Its name as click hands it to a function."""
        return self.name.replace("-", "_")

    @property
    def shown(self) -> str:
        return "-v, --v" if self.name == "v" else f"--{self.name}"

    def is_what_happens(self, value: Any) -> bool:
        return value in self.fits if self.fits else bool(value == self.default)

    def parse(self, text: str) -> Any:
        try:
            return self.kind.parse(text)
        except ValueError as problem:
            raise FlagError(f'invalid argument "{text}" for "{self.shown}" flag: {problem}') from None


_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))
_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]*|[1-9][0-9]*)")
_DIGITS = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LARGEST_FLOAT32 = 3.4028234663852886e38
_VERBOSITY_BITS = 31
"""One less than 32, such that it fits an int32."""


def _bool(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def _integer(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        # Go reads 017 as octal; Python wants 0o17 for that.
        number = int(re.sub(r"^([+-]?)0(?=[0-7])", r"\g<1>0o", text), 0)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError(f'strconv.ParseInt: parsing "{text}": value out of range')
        return number

    return parse


def _float32(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f'strconv.ParseFloat: parsing "{text}": invalid syntax')
    number = float(text)
    if math.fabs(number) > _LARGEST_FLOAT32:
        raise ValueError(f'strconv.ParseFloat: parsing "{text}": value out of range')
    return number


def verbosity(text: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    level = int(text)
    if level >= 2**_VERBOSITY_BITS:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return level


def _address(text: str) -> str:
    """An IP address; nothing means all of them."""
    stripped = text.strip()
    try:
        return str(ipaddress.ip_address(stripped)) if stripped else "0.0.0.0"
    except ValueError:
        raise ValueError(f'failed to parse IP: "{text}"') from None


def _csv(text: str) -> list[str]:
    try:
        return next(csv.reader([text], strict=True)) if text else []
    except csv.Error as problem:
        raise ValueError(f"parse error: {problem}") from None


def _strings(text: str) -> tuple[str, ...]:
    return tuple(_csv(text))


def _int32s(text: str) -> tuple[int, ...]:
    return tuple(map(_integer(32), text.split(",")))


def _string_map(text: str) -> tuple[tuple[str, str], ...]:
    """`a=b`, or several such as CSV: keys and values with commas then stand in quotes."""
    n_pairs = text.count("=")
    if not n_pairs:
        raise ValueError(f"{text} must be formatted as key=value")
    pairs = [text.strip('"')] if n_pairs == 1 else _csv(text)
    for pair in pairs:
        if "=" not in pair:
            raise ValueError(f"{pair} must be formatted as key=value")
    return tuple((pair.split("=", 1)[0], pair.split("=", 1)[1]) for pair in pairs)


def _gates(text: str) -> tuple[tuple[str, str], ...]:
    """(component, `Gate=true`), the component being empty where none is named."""
    found = []
    for pair in filter(None, text.split(",")):
        component, colon, gate = pair.partition(":")
        found.append((component.strip(), gate.strip()) if colon else ("", pair.strip()))
    return tuple(found)


def _vmodule(text: str) -> tuple[tuple[str, int], ...]:
    found = []
    for item in filter(None, text.split(",")):
        pattern, _, level = item.partition("=")
        if not pattern or not level or "=" in level:
            raise ValueError(f'"{item}" does not have the pattern=N format')
        try:
            found.append((pattern, verbosity(level)))
        except ValueError as problem:
            raise ValueError(f'parsing verbosity in "{item}": {problem}') from None
    return tuple(found)


def _version(text: str) -> str:
    """`true`, `false` or `raw`: whether, and how, to print the version."""
    return text if text == "raw" else str(_bool(text)).lower()


# -- How Go prints them ------------------------------------------------------------------------------------------------


def _show_bool(value: bool) -> str:
    return "true" if value else "false"


def _show_number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _show_list(values: tuple[Any, ...]) -> str:
    return f"[{','.join(map(str, values))}]"


def _show_map(pairs: tuple[tuple[str, str], ...]) -> str:
    return _show_list(tuple(f"{key}={value}" for key, value in pairs))


def _show_gates(gates: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f"{component}:{gate}" for component, gate in sorted(gates, key=lambda gate: gate[0]))


def _show_vmodule(levels: tuple[tuple[str, int], ...]) -> str:
    return ",".join(f"{pattern}={level}" for pattern, level in levels)


BOOL = FlagKind("", _bool, _show_bool, if_bare="true")
STRING = FlagKind("string", str, str)
INT = FlagKind("int", _integer(64), str)
INT32 = FlagKind("int32", _integer(32), str)
FLOAT32 = FlagKind("float32", _float32, _show_number)
DURATION = FlagKind("duration", Duration.parse, str)
IP = FlagKind("ip", _address, str)
STRINGS = FlagKind("strings", _strings, _show_list, is_list=True)
INT32S = FlagKind("int32Slice", _int32s, _show_list, is_list=True)
STRING_MAP = FlagKind("stringToString", _string_map, _show_map, is_list=True)
GATES = FlagKind("A=true,B=false", _gates, _show_gates, is_list=True)
LEVEL = FlagKind("Level", verbosity, str)
VMODULE = FlagKind("pattern=N,...", _vmodule, _show_vmodule, is_list=True)
QUANTITY = FlagKind("quantity", quantity.parse, str)
VERSION = FlagKind("version[=true]", _version, str, if_bare="true")
