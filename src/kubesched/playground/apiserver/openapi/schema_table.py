"""The one table of all shapes: OpenAPI schemas and the order, omission rule and wire number of every field.

The data lie in ``schemas.json.gz`` beside this module; their origin is Kubernetes v1.36.4 (Apache License 2.0, see
NOTICE). The table is read once, when first asked for. ``struct_types.py`` turns it into types to decode and merge by,
``documents_v3.py`` into OpenAPI documents.
"""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

_REF_PREFIX = "#/components/schemas/"


class LayoutField(NamedTuple):
    """One field of a struct as Go declares it. For an inlined struct ``name`` is the name of its schema."""

    name: str
    number: int  # of the field in protobuf; 0 or less: not in protobuf
    flags: str  # p pointer, o left out when empty, z left out when zero (structs too), i inlined
    go_type: str

    @property
    def is_inline(self) -> bool:
        return "i" in self.flags


class InternalField(NamedTuple):
    """One field of a struct as the real server has it inside.

    Its form: s text, i number, b truth, q amount, n nothing when absent ("n:Struct", "m:Struct": of structs, by name),
    S:Struct always there, e:Struct embedded, x as in v1.
    """

    go_name: str
    form: str
    json_name: str = ""  # where it is not the Go name with small letters


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    packed = resources.files(__package__).joinpath("schemas.json.gz").read_bytes()
    table: dict[str, Any] = json.loads(gzip.decompress(packed))
    return table


def schemas() -> dict[str, dict[str, Any]]:
    """All OpenAPI v3 schemas by name ("io.k8s.api.core.v1.Pod"). Not to be changed by callers."""
    found: dict[str, dict[str, Any]] = _table()["schemas"]
    return found


@lru_cache(maxsize=1024)
def layout(schema_name: str) -> tuple[LayoutField, ...]:
    """The fields of one struct in Go's order; empty for what is no struct."""
    return tuple(LayoutField(*entry) for entry in _table()["layout"].get(schema_name, ()))


def internal_fields(struct_name: str) -> list[InternalField]:
    """Fields of a struct in the form that the real server uses inside: pod specs, volumes, claims and what is in them.

    Structs of other groups than the core have its name in front: "resource.DeviceClaim".
    """
    return [InternalField(*entry) for entry in _table()["internal"].get(struct_name, ())]


@lru_cache(maxsize=1)
def _names_by_kind() -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for name, schema in schemas().items():
        kinds = schema.get("x-kubernetes-group-version-kind", ())
        if len(kinds) == 1:  # kinds that every group has (DeleteOptions, WatchEvent) are nobody's objects
            found[kinds[0]["group"], kinds[0]["version"], kinds[0]["kind"]] = name
    return found


def schema_name(group: str, version: str, kind: str) -> str | None:
    """The schema of a kind, None if it is not built in."""
    return _names_by_kind().get((group, version, kind))


def referenced_name(schema: dict[str, Any]) -> str | None:
    """The schema that a property refers to, plainly or by ``allOf``."""
    reference = schema.get("$ref")
    if reference is None and "allOf" in schema:
        reference = schema["allOf"][0].get("$ref")
    return None if reference is None else str(reference).removeprefix(_REF_PREFIX)
