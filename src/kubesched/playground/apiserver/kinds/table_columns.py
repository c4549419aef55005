"""Columns that many kinds share, with ages as kubectl shows them; descriptions are those of fields in the schema."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kubesched.k8s.model.times import parse_instant
from kubesched.playground.apiserver.openapi import schemas
from kubesched.playground.apiserver.served_resource import Object, TableColumn

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400


def age_of(obj: Object) -> str:
    """Since the object's creation."""
    return since(obj.get("metadata", {}).get("creationTimestamp"))


def since(timestamp: Any) -> str:
    return human(time.time() - parse_instant(timestamp)) if timestamp else "<unknown>"


def human(for_s: float) -> str:
    """A duration as Kubernetes prints it: exact while short, ever coarser as it grows."""
    seconds = int(for_s)
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds // _MINUTE, "m", seconds % _MINUTE, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds // _HOUR, "h", seconds // _MINUTE % 60, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds // _DAY, "d", seconds // _HOUR % 24, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds // _YEAR, "y", seconds // _DAY % 365, "d")
    return f"{seconds // _YEAR}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def field_text(schema_name: str, field_name: str) -> str:
    """What the schema says of a field."""
    text: str = schemas.all_schemas()[schema_name]["properties"][field_name].get("description", "")
    return text


def described(
    name: str,
    value: Callable[[Object], Any],
    schema_name: str,
    field_name: str,
    *,
    type: str = "string",
    priority: int = 0,
) -> TableColumn:
    return TableColumn(name, value, type=type, description=field_text(schema_name, field_name), priority=priority)


def name_of(obj: Object) -> str:
    name: str = obj.get("metadata", {}).get("name", "")
    return name


NAME = TableColumn("Name", name_of, format="name", description=field_text(_OBJECT_META, "name"))
AGE = TableColumn("Age", age_of, description=field_text(_OBJECT_META, "creationTimestamp"))

CONTAINERS_TEXT = "Names of each container in the template."
IMAGES_TEXT = "Images referenced by each container in the template."


def dig(path: str, default: Any = "") -> Callable[[Object], Any]:
    """Reads a value by its dotted path."""
    names = path.split(".")

    def read(obj: Object) -> Any:
        value: Any = obj
        for name in names:
            if not isinstance(value, dict) or value.get(name) is None:
                return default
            value = value[name]
        return value

    return read


def print_labels(labels: Object | None) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items())) or "<none>"


def print_selector(selector: Object | None) -> str:
    """A label selector as text, requirements sorted by key."""
    if selector is None:
        return "<none>"
    parts = [(name, f"{name}={value}") for name, value in selector.get("matchLabels", {}).items()]
    parts += [
        (one["key"], _print_requirement(one["key"], one["operator"], one.get("values", [])))
        for one in selector.get("matchExpressions", [])
    ]
    return ",".join(text for _, text in sorted(parts)) or "<none>"


def _print_requirement(key: str, operator: str, values: list[str]) -> str:
    if operator in ("In", "NotIn"):
        word = "in" if operator == "In" else "notin"
        return f"{key} {word} ({','.join(sorted(values))})"
    return key if operator == "Exists" else f"!{key}"


def template_columns(where: str) -> tuple[TableColumn, TableColumn]:
    """Containers and images of the pod template at a dotted path."""
    containers = dig(f"{where}.spec.containers", [])

    def names(obj: Object) -> str:
        return ",".join(container.get("name", "") for container in containers(obj))

    def images(obj: Object) -> str:
        return ",".join(container.get("image", "") for container in containers(obj))

    return (
        TableColumn("Containers", names, description=CONTAINERS_TEXT, priority=1),
        TableColumn("Images", images, description=IMAGES_TEXT, priority=1),
    )


PLAIN = (NAME, AGE)


def _created_at(obj: Object) -> str:
    return str(obj["metadata"].get("creationTimestamp", ""))


# of kinds for which the real server has no printer
DEFAULT_COLUMNS = (NAME, TableColumn("Created At", _created_at, type="date", description=AGE.description))
