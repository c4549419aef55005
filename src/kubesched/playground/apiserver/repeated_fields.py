"""Fields that a body has but should not: those given twice in one object, and those that its kind does not know.

Only the text tells what was given twice, so this reads it again, and only when fieldValidation asks for it. The words
and their order are the real server's: JSON is told in the order of the text, YAML by lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

from kubesched.k8s.model.kubernetes_yaml import BROKEN_VALUES, KubernetesLoader
from kubesched.playground.apiserver.go_text import in_source, quoted

_MOST_FINDINGS = 100


@dataclass(frozen=True, slots=True)
class Repeated:
    """What a body gives twice.

    ``walk`` has the paths of all fields in the order of the JSON text, each with whether it was there before, and is
    empty when nothing repeats; ``yaml_error`` is what Go's YAML decoder says.
    """

    walk: list[tuple[str, bool]] = field(default_factory=list)
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
        for path, is_repeated in self.walk:
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


class _Pairs(list[tuple[str, Any]]):
    """An object with all its fields, also repeated ones."""


def repeated_in_json(data: bytes) -> Repeated:
    """``data`` has been read as JSON before."""
    seen_twice = False

    def check(pairs: list[tuple[str, Any]]) -> None:
        nonlocal seen_twice
        seen_twice = seen_twice or len(pairs) != len({name for name, _ in pairs})

    text = data.decode(errors="replace")
    json.loads(text, object_pairs_hook=check)
    if not seen_twice:
        return NOTHING_REPEATED
    walk: list[tuple[str, bool]] = []
    _collect(json.loads(text, object_pairs_hook=_Pairs), "", walk)
    return Repeated(walk)


def _collect(value: Any, path: str, walk: list[tuple[str, bool]]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, inner in value:
            here = f"{path}.{name}" if path else name
            walk.append((here, name in seen))
            seen.add(name)
            _collect(inner, here, walk)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            _collect(inner, f"{path}[{at}]", walk)


def repeated_in_yaml(data: bytes) -> Repeated:
    """``data`` has been read as YAML before."""
    try:
        if not repeated_in_json(data).walk:
            return NOTHING_REPEATED  # JSON is YAML too, and much sooner looked through
    except (ValueError, RecursionError):
        pass
    reading = KubernetesLoader(data)
    try:
        document = reading.get_node() if reading.check_node() else None
        lines: list[str] = []
        if document is not None:
            _collect_lines(document, reading, lines)
    except (yaml.YAMLError, *BROKEN_VALUES):
        return NOTHING_REPEATED
    finally:
        reading.dispose()
    if not lines:
        return NOTHING_REPEATED
    return Repeated(yaml_error="yaml: unmarshal errors:\n" + "\n".join(f"  {line}" for line in lines))


def _collect_lines(node: yaml.Node, reading: KubernetesLoader, lines: list[str]) -> None:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _collect_lines(item, reading, lines)
    elif isinstance(node, yaml.MappingNode):
        _collect_from_mapping(node, reading, set(), lines)


def _collect_from_mapping(node: yaml.MappingNode, reading: KubernetesLoader, seen: set[Any], lines: list[str]) -> None:
    for key_node, value_node in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            for merged in value_node.value if isinstance(value_node, yaml.SequenceNode) else (value_node,):
                if isinstance(merged, yaml.MappingNode):
                    _collect_from_mapping(merged, reading, seen, lines)
            continue
        _collect_lines(value_node, reading, lines)
        key = reading.construct_object(key_node) if isinstance(key_node, yaml.ScalarNode) else None
        identity = (type(key), key)
        if identity in seen:
            lines.append(f"line {value_node.start_mark.line + 1}: key {in_source(key)} already set in map")
        seen.add(identity)
