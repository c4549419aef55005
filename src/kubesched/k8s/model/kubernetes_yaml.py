"""YAML as Kubernetes reads and writes it: YAML 1.1 as another way to write JSON, and within bounds.

Every YAML text goes through here, so that a word means the same in a manifest, a configuration, a kubeconfig and the
body of a request: `y` is true, `1e3` and `0o17` are numbers, `1:30` and `2026-01-01` are texts, and keys become texts.
The rules are those of sigs.k8s.io/yaml. What is written is quoted where a reader could take a text for something else.

How deeply a text nests, how many values it has, and how often its aliases repeat them are looked at before anything is
made of it. What exceeds a bound is an error like any other in a YAML text. The fast loader would end the process with
nested levels beyond some tens of thousands, and fill the memory with what a few lines of aliases stand for. Looking
costs about as much as loading, so texts that cannot exceed a bound, as a glance at their signs tells, are not looked
through.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from kubesched.k8s.errors import KubeschedError

DEEPEST = 500
"""As many levels may be nested."""


@dataclass(frozen=True, slots=True)
class YamlBounds:
    """`most_values` are keys, texts, numbers, lists and maps, aliases written out."""

    most_values: int
    deepest: int = DEEPEST


FILE_BOUNDS = YamlBounds(5_000_000)
"""For files from outside: about 100 MB of manifests."""

BODY_BOUNDS = YamlBounds(100_000)
"""For bodies of requests: about 2 MB of manifests. Clients send JSON, which has no such bound."""

_INDENTED = re.compile(rb"^([ \t]*)((?:[-?] +)*)", re.MULTILINE)


BROKEN_VALUES = (ValueError, OverflowError, TypeError, IndexError, KeyError, AttributeError)
"""What PyYAML's constructors raise, each in its own way: for a number of 5,000 digits, for a tag that does not fit."""


class YamlBoundError(KubeschedError, yaml.MarkedYAMLError):
    """The text exceeds a bound: `problem` says which, `problem_mark` where, if that is known."""

    def __init__(self, problem: str, mark: Any = None) -> None:
        super().__init__(problem=problem, problem_mark=mark)


def check_bounds(data: bytes | str, bounds: YamlBounds = FILE_BOUNDS) -> None:
    """Raises `YamlBoundError`, or the error of a text that is no YAML."""
    given = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    if not _may_exceed(given, bounds):
        return
    _Counts(bounds).read(yaml.parse(data, Loader=yaml.CSafeLoader))


def in_one_line(problem: Exception) -> str:
    """What is wrong with a value that Python refuses to make."""
    text = " ".join(str(problem).split())
    return "a number has more than 4,300 digits" if text.startswith("Exceeds the limit") else text


def yaml_problem(problem: Exception, data: bytes = b"", *, language: str = "YAML") -> str:
    """Why a text is no YAML, in one line: where it stumbles, over what, and what people most often have there."""
    mark = getattr(problem, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    text = " ".join(str(getattr(problem, "problem", None) or str(problem).partition("\n")[0]).split())
    cause = likely_cause(problem, data) if isinstance(problem, yaml.YAMLError) else ""
    return f"{where}not {language}: {text}{cause}"


def likely_cause(problem: yaml.YAMLError, data: bytes) -> str:
    """What people most often have in the line that YAML stumbles over, in brackets; or nothing."""
    mark = getattr(problem, "problem_mark", None)
    lines = data.splitlines()
    if mark is None or mark.line >= len(lines):
        return ""
    line = lines[mark.line]
    if b"\t" in line[: len(line) - len(line.lstrip())]:
        return " (a tab: YAML is indented with spaces)"
    return " (a template? render it first)" if b"{{" in line else ""


def _may_exceed(data: bytes, bounds: YamlBounds) -> bool:
    """Whether a bound could be exceeded: every value needs a sign, every level of a flow a bracket, every level of a
    block an indentation or a sign in its line, and every alias an anchor."""
    if b"&" in data or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return True
    if sum(map(data.count, (b"\n", b",", b":", b"-", b"?", b"[", b"{", b"\r"))) * 2 + 2 > bounds.most_values:
        return True
    n_levels = data.count(b"[") + data.count(b"{")
    longest = max((found.end() - found.start() for found in _INDENTED.finditer(data)), default=0)
    return n_levels + 2 * (longest + 1) > bounds.deepest


class _Counts:
    """What the events of a text add up to."""

    def __init__(self, bounds: YamlBounds) -> None:
        self._bounds = bounds
        self._n_values = 0
        self._anchored: dict[str, int] = {}
        """How many values an anchor stands for; less than one while it is not complete."""
        self._open: list[tuple[str | None, int]] = []
        """The anchors of the collections that are open, and how many values there were before each."""

    def read(self, events: Iterator[yaml.Event]) -> None:
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._add(event)
                if event.anchor:
                    self._anchored[event.anchor] = 1
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor, before = self._open.pop()
                if anchor:
                    self._anchored[anchor] = self._n_values - before
            elif isinstance(event, yaml.AliasEvent):
                self._repeat(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                self._anchored.clear()

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        self._open.append((event.anchor, self._n_values))
        if event.anchor:
            self._anchored[event.anchor] = 0
        if len(self._open) > self._bounds.deepest:
            raise YamlBoundError(f"exceeded max depth of {self._bounds.deepest}", event.start_mark)
        self._add(event)

    def _repeat(self, event: yaml.AliasEvent) -> None:
        size = self._anchored.get(event.anchor or "", 1)
        if size == 0:
            raise YamlBoundError(f"anchor '{event.anchor}' value contains itself", event.start_mark)
        if self._n_values + size > self._bounds.most_values:
            raise YamlBoundError("document contains excessive aliasing", event.start_mark)
        self._n_values += size

    def _add(self, event: yaml.NodeEvent) -> None:
        self._n_values += 1
        if self._n_values > self._bounds.most_values:
            raise YamlBoundError(f"more than {self._bounds.most_values:,} values", event.start_mark)


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


class NotJsonError(KubeschedError, yaml.MarkedYAMLError):
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


# -- keys that are given twice -----------------------------------------------------------------------------------------


class JsonField(NamedTuple):
    """A field where it stands in a JSON text, and whether its object had it before."""

    path: str
    name: str
    is_repeated: bool


class RepeatedKey(NamedTuple):
    """A key that its mapping had before, in a YAML text."""

    path: str
    key: yaml.Node
    value: yaml.Node


class _Pairs(list[tuple[str, Any]]):
    """An object with all its fields, also repeated ones."""


def json_fields(text: str) -> list[JsonField]:
    """All fields of a JSON text in its order; none when nothing repeats, which is soon found out."""
    seen_twice = False

    def check(pairs: list[tuple[str, Any]]) -> None:
        nonlocal seen_twice
        seen_twice = seen_twice or len(pairs) != len({name for name, _ in pairs})

    json.loads(text, object_pairs_hook=check)
    fields: list[JsonField] = []
    if seen_twice:
        _collect_fields(json.loads(text, object_pairs_hook=_Pairs), "", fields)
    return fields


def _collect_fields(value: Any, path: str, fields: list[JsonField]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, inner in value:
            here = f"{path}.{name}" if path else name
            fields.append(JsonField(here, name, name in seen))
            seen.add(name)
            _collect_fields(inner, here, fields)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            _collect_fields(inner, f"{path}[{at}]", fields)


def repeated_keys(
    document: yaml.Node, identity: Callable[[yaml.Node], object], *, aliases_once: bool = False
) -> list[RepeatedKey]:
    """Walks the tree of nodes: once constructed, a mapping has forgotten what was overwritten. As Go's decoder has it,
    what is merged into a mapping counts as given there, and a key is reported after what its value holds. `identity`
    says which keys are the same; with `aliases_once`, what aliases repeat is looked at where it stands first.
    """
    search = _KeySearch(identity, set() if aliases_once else None)
    search.look_into(document, "")
    return search.found


class _KeySearch:
    def __init__(self, identity: Callable[[yaml.Node], object], visited: set[int] | None) -> None:
        self._identity = identity
        self._visited = visited
        self.found: list[RepeatedKey] = []

    def look_into(self, node: yaml.Node, path: str) -> None:
        if self._visited is not None:
            if id(node) in self._visited:
                return
            self._visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.look_into(item, f"{path}[{index}]")
        elif isinstance(node, yaml.MappingNode):
            self._look_into_mapping(node, path, set())

    def _look_into_mapping(self, node: yaml.MappingNode, path: str, seen: set[object]) -> None:
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                for merged in value.value if isinstance(value, yaml.SequenceNode) else (value,):
                    if isinstance(merged, yaml.MappingNode):
                        self._look_into_mapping(merged, path, seen)
                continue
            here = f"{path}.{key.value}" if path else str(key.value)
            self.look_into(value, here)
            identity = self._identity(key)
            if identity in seen:
                self.found.append(RepeatedKey(here, key, value))
            seen.add(identity)


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

_KubernetesDumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str(text)))

_quoting = _Quoting()
