"""Fields that a body has but should not: those given twice in one object, and those that its kind does not know.

Only the text tells what was given twice, so this reads it again, and only when fieldValidation asks for it. The words
and their order are the real server's: JSON is told in the order of the text, YAML by lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import yaml

from kubesched.k8s.model.kubernetes_yaml import BROKEN_VALUES, JsonField, KubernetesLoader, json_fields, repeated_keys
from kubesched.playground.apiserver.go_text import in_source, quoted

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
