"""Fields of an object that its kind does not have, each with the nearest name that it has.

For manifests that no server has checked. An API server drops such fields and warns of them (`decoding`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesched.k8s.model.spelling import did_you_mean
from kubesched.playground.apiserver.openapi.schemas import ValueType, type_of_kind


def unknown_fields(document: Any, api_version: str, kind: str) -> Iterator[tuple[str, str]]:
    """(path, hint) for each, in the order of the document; none for a kind that is not built in."""
    group, _, version = api_version.rpartition("/")
    found = type_of_kind(group, version, kind)
    if found is not None:
        yield from _below(document, found, "")


def _below(value: Any, of: ValueType, path: str) -> Iterator[tuple[str, str]]:
    element = of.element
    if of.form == "struct" and isinstance(value, dict):
        fields = of.fields
        for name, item in value.items():
            inner = f"{path}.{name}" if path else str(name)
            known = fields.get(name)
            if known is None:
                yield inner, did_you_mean(str(name), fields)
            elif item is not None:
                yield from _below(item, known.type, inner)
    elif of.form == "list" and isinstance(value, list) and element is not None:
        for index, item in enumerate(value):
            yield from _below(item, element, f"{path}[{index}]")
    elif of.form == "map" and isinstance(value, dict) and element is not None:
        for name, item in value.items():
            yield from _below(item, element, f"{path}.{name}")
