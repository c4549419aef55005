"""YAML as Kubernetes reads and writes it: YAML 1.1 as another way to write JSON.

Every YAML text goes through here, so that a word means the same in a manifest, a configuration, a kubeconfig and the
body of a request: `y` is true, `1e3` and `0o17` are numbers, `1:30` and `2026-01-01` are texts, and keys become texts.
The rules are those of sigs.k8s.io/yaml. What is written is quoted where a reader could take a text for something else.

Next: `bounded_yaml`, for how much of it is taken.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Iterator
from typing import Any

import yaml

from kubesched.k8s.model.bounded_yaml import (
    BROKEN_VALUES,
    FILE_BOUNDS,
    YamlBoundError,
    YamlBounds,
    check_bounds,
    in_one_line,
)

_TAG = "tag:yaml.org,2002:"
_BOOLS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_INT = r"[-+]?_*(?:0[bB][01_]+|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+|[0-9][0-9_]*)"
_FLOAT = (
    r"[-+]?_*[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9_]+)?"
    r"|[-+]?\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_PLAIN_SCALARS = (
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("bool", "|".join(_BOOLS), tuple("yYnNtTfFoO")),
    ("int", _INT, tuple("-+0123456789")),
    ("float", _FLOAT, tuple("-+.0123456789")),
    ("merge", "<<", ("<",)),
)
"""Tag, pattern, and the characters with which a word of the pattern can begin."""

_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_OCTAL = re.compile(r"([-+]?)0([0-7]+)")
_WHOLE = range(-(2**63), 2**64)
"""What fits into 64 bits; a larger number is a float."""


class NotJsonError(yaml.MarkedYAMLError):
    """The text is YAML, and stands for what JSON cannot hold."""

    def __init__(self, problem: str, mark: Any = None) -> None:
        super().__init__(problem=problem, problem_mark=mark)


def load_documents(data: bytes | str, bounds: YamlBounds = FILE_BOUNDS) -> Iterator[Any]:
    """The documents of a stream. Raises `yaml.YAMLError`."""
    check_bounds(data, bounds)
    try:
        yield from yaml.load_all(data, Loader=KubernetesLoader)
    except RecursionError:
        raise YamlBoundError("nested too deeply") from None
    except BROKEN_VALUES as problem:
        raise YamlBoundError(in_one_line(problem)) from None


def load_document(data: bytes | str, bounds: YamlBounds = FILE_BOUNDS) -> Any:
    """The first document of a stream; `None` if there is none. Raises `yaml.YAMLError`."""
    return next(load_documents(data, bounds), None)


def plain_yaml(value: Any) -> str:
    """A value as YAML that people read: everything written out, keys in the order given."""
    return str(yaml.dump(value, Dumper=_KubernetesDumper, sort_keys=False, allow_unicode=True, width=1000))


def needs_quotes(text: str) -> bool:
    """Whether a reader of YAML would take the text, without quotes, for something else."""
    return _quoting.resolve(yaml.ScalarNode, text, (True, False)) not in (f"{_TAG}str", f"{_TAG}yaml")  # type: ignore[no-untyped-call]


# -- scalars -----------------------------------------------------------------------------------------------------------


def key_text(key: object) -> str | None:
    """A key as JSON has it; None for what cannot be one."""
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int():
            return str(key)
        case float():
            return _float_key(key)
    return None


def _float_key(number: float) -> str:
    """As short as tells it from other numbers of 32 bits, which is how Kubernetes writes it."""
    if not math.isfinite(number):
        return ".nan" if math.isnan(number) else ".inf" if number > 0 else "-.inf"
    try:
        (narrow,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        return ".inf" if number > 0 else "-.inf"
    written = (f"{narrow:.{n}e}" for n in range(9))
    digits = next(text for text in written if struct.pack("f", float(text)) == struct.pack("f", narrow))
    mantissa, _, exponent = digits.partition("e")
    power = int(exponent)
    if power < -4 or power >= 6:
        return f"{mantissa}e{power:+03d}"
    return f"{float(digits):.{max(0, len(mantissa.partition('.')[2]) - power)}f}"


def _number(text: str) -> int | float | str:
    """What a word of digits stands for; the text itself if it is no number after all."""
    plain = text.replace("_", "")
    octal = _OCTAL.fullmatch(plain)
    try:
        whole: int | None = int(f"{octal[1]}0o{octal[2]}" if octal else plain, 0)
    except ValueError:
        if plain.lstrip("-+").isdecimal() and not plain.lstrip("-+").startswith("0"):
            raise  # so many digits that Python refuses to read them
        whole = None
    if whole is not None and whole in _WHOLE and not (plain.startswith("+") and whole >= 2**63):
        return whole
    if _DECIMAL.fullmatch(plain):
        number = float(plain)
        return number if math.isfinite(number) else text
    return text


def _as_json(number: float, mark: Any) -> int | float:
    """JSON writes a number without a fraction as a whole one, and has none that is not finite."""
    if not math.isfinite(number):
        name = "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
        raise NotJsonError(f"json: unsupported value: {name}", mark)
    return int(number) if number.is_integer() and int(number) in _WHOLE else number


# -- reading -----------------------------------------------------------------------------------------------------------


class KubernetesLoader(yaml.CSafeLoader):
    """Makes what JSON can hold of a text. For one who needs the tree of nodes too; else `load_documents` is enough."""

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "expected a mapping", node.start_mark)
        self.flatten_mapping(node)
        construct = self.construct_object
        return {self._key(key): construct(value, deep=deep) for key, value in node.value}

    def _key(self, node: yaml.Node) -> str:
        if node.tag == f"{_TAG}str" and isinstance(node, yaml.ScalarNode):
            return str(node.value)
        found = _float_of(node) if node.tag == f"{_TAG}float" else self.construct_object(node, deep=True)
        text = key_text(found)
        if text is None:
            raise NotJsonError("null cannot be a key" if found is None else "found unhashable key", node.start_mark)
        return text

    def _construct_int(self, node: yaml.ScalarNode) -> int | float | str:
        text = str(self.construct_scalar(node))
        number = _number(text)
        if isinstance(number, str) and not re.fullmatch(_INT, text):
            raise _misfit(node, "str", "int")
        return _as_json(number, node.start_mark) if isinstance(number, float) else number

    def _construct_float(self, node: yaml.ScalarNode) -> int | float | str:
        number = _float_of(node)
        return _as_json(number, node.start_mark) if isinstance(number, float) else number

    def _construct_bool(self, node: yaml.ScalarNode) -> bool:
        found = _BOOLS.get(str(self.construct_scalar(node)))
        if found is None:
            raise _misfit(node, "str", "bool")
        return found

    def _construct_binary(self, node: yaml.ScalarNode) -> str:
        try:
            return base64.b64decode("".join(str(node.value).split()), validate=True).decode(errors="replace")
        except (binascii.Error, ValueError):
            raise NotJsonError("!!binary value contains invalid base64 data", node.start_mark) from None


def _float_of(node: yaml.Node) -> int | float | str:
    text = str(node.value)
    if text.lstrip("-+").lower() in (".inf", ".nan"):
        return float(text.replace(".", ""))
    number = _number(text)
    if isinstance(number, str) and not re.fullmatch(_FLOAT, text):
        raise _misfit(node, "str", "float")
    return number


def _misfit(node: yaml.Node, found: str, wanted: str) -> NotJsonError:
    return NotJsonError(f"cannot decode !!{found} `{node.value}` as a !!{wanted}", node.start_mark)


KubernetesLoader.yaml_implicit_resolvers = {}
for _name, _construct in (
    ("int", KubernetesLoader._construct_int),
    ("float", KubernetesLoader._construct_float),
    ("bool", KubernetesLoader._construct_bool),
    ("binary", KubernetesLoader._construct_binary),
    ("timestamp", KubernetesLoader.construct_scalar),
    ("set", KubernetesLoader.construct_yaml_map),
    ("omap", KubernetesLoader.construct_yaml_seq),
    ("pairs", KubernetesLoader.construct_yaml_seq),
):
    KubernetesLoader.add_constructor(f"{_TAG}{_name}", _construct)


# -- writing -----------------------------------------------------------------------------------------------------------


class _KubernetesDumper(yaml.CSafeDumper):
    """Quotes what our rules or plain YAML 1.1 take for something else; no anchors for what occurs twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Quoting(yaml.resolver.Resolver):
    """The rules of the dumper by themselves."""


for _name, _pattern, _first in _PLAIN_SCALARS:
    for _kind in (KubernetesLoader, _KubernetesDumper, _Quoting):
        _kind.add_implicit_resolver(f"{_TAG}{_name}", re.compile(f"^(?:{_pattern})$"), list(_first))

_quoting = _Quoting()
