"""Adds a kind of Kubernetes to the table of schemas that the embedded API server reads kinds by.

    python tools/kind_schemas.py KUBERNETES_CHECKOUT GROUP/VERSION KIND

From a checkout of Kubernetes come the OpenAPI schemas of the kind, of its list, and of all they refer to, and from the
Go structs what OpenAPI does not say: the order of fields, which are left out when empty, and their protobuf numbers.
What the table has already stays as it is. Exit code 1, and nothing written, when something is not found.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src" / "kubesched" / "playground" / "apiserver" / "openapi" / "schemas.json.gz"
_FIELD = re.compile(r"^\t(?:(?P<name>\w+) )?(?P<type>[\w.*\[\]]+)\s+`(?P<tags>[^`]+)`", re.MULTILINE)
_IMPORT = re.compile(r'^(?:\t|import )(?:(\w+) )?"([\w./-]+)"$', re.MULTILINE)
_TYPE_META = [["kind", -1, "o", "string"], ["apiVersion", -1, "o", "string"]]
_BUILT_IN = {"map", "string", "bool", "int", "int32", "int64", "float64", "byte", "uint8"}

Schema = dict[str, Any]
Layout = list[list[Any]]


class NotFoundError(Exception):
    """Something is not in the checkout; the text says what."""


def document(checkout: Path, group_version: str) -> dict[str, Schema]:
    """The schemas of a version of a group, by name."""
    group, _, version = group_version.rpartition("/")
    name = f"apis__{group}__{version}_openapi.json" if group else f"api__{version}_openapi.json"
    path = checkout / "api" / "openapi-spec" / "v3" / name
    if not path.exists():
        raise NotFoundError(f"{path} is not there: is {group_version} a version that is served?")
    schemas: dict[str, Schema] = json.loads(path.read_text())["components"]["schemas"]
    return schemas


def names_needed(schemas: dict[str, Schema], group_version: str, kind: str) -> list[str]:
    """The schemas of the kind and of its list, and all they refer to."""
    group, _, version = group_version.rpartition("/")
    wanted = [[{"group": group, "kind": each, "version": version}] for each in (kind, f"{kind}List")]
    found = [name for name in schemas if schemas[name].get("x-kubernetes-group-version-kind") in wanted]
    if len(found) != len(wanted):
        raise NotFoundError(f"{group_version} has no {kind} with a list")
    for name in found:  # which grows meanwhile
        found += [other for other in _references(schemas[name]) if other not in found]
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.rpartition("/")[2]
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def layout(checkout: Path, schema_name: str) -> Layout | None:
    """The fields of a struct in Go's order; None if the schema is no struct of an API's types."""
    package, _, struct = schema_name.rpartition(".")
    folder = package.removeprefix("io.k8s.").replace(".", "/")
    path = checkout / "staging" / "src" / "k8s.io" / folder / "types.go"
    if not path.exists():
        return None
    text = path.read_text()
    body = re.search(rf"^type {struct} struct {{\n(.*?)^}}", text, re.MULTILINE | re.DOTALL)
    return None if body is None else struct_layout(body[1], package, dict(_imports(text)))


def _imports(text: str) -> Iterator[tuple[str, str]]:
    for alias, path in _IMPORT.findall(text):
        yield alias or path.rpartition("/")[2], path.rpartition("/")[2]


def struct_layout(body: str, package: str, imports: dict[str, str]) -> Layout:
    """From the text of a Go struct: name, number in protobuf, flags and type of each field, as the table has them."""
    version = package.rpartition(".")[2]
    found: Layout = []
    for field in _FIELD.finditer(body):
        tags = dict(re.findall(r'(\w+):"([^"]*)"', field["tags"]))
        name, *options = tags.get("json", "").split(",")
        if field["type"].rpartition(".")[2] == "TypeMeta":
            found += _TYPE_META
            continue
        pointer, go_type = field["type"].startswith("*"), _go_type(field["type"].lstrip("*"), version, imports)
        number = int(tags["protobuf"].split(",")[1]) if "protobuf" in tags else -1
        if "inline" in options:
            found.append([f"{package}.{go_type.rpartition('.')[2]}", number, "i", go_type])
        else:
            flags = "p" * pointer + "o" * ("omitempty" in options) + "z" * ("omitzero" in options)
            found.append([name, number, flags, go_type])
    return found


def _go_type(text: str, version: str, imports: dict[str, str]) -> str:
    """With the name of the package before each type that is not built in: "map[v1.ResourceName]resource.Quantity"."""

    def qualified(match: re.Match[str]) -> str:
        package, _, name = match[0].rpartition(".")
        if not package and name in _BUILT_IN:
            return name.replace("byte", "uint8")
        return f"{imports.get(package, package) or version}.{name}"

    return re.sub(r"[A-Za-z][\w.]*", qualified, text)


def add(table: dict[str, Any], checkout: Path, group_version: str, kind: str) -> list[str]:
    """Adds to the table what the kind needs and it does not have; their names."""
    schemas = document(checkout, group_version)
    new = [name for name in names_needed(schemas, group_version, kind) if name not in table["schemas"]]
    for name in new:
        table["schemas"][name] = schemas[name]
        if fields := layout(checkout, name):
            table["layout"][name] = fields
        elif "properties" in schemas[name]:
            raise NotFoundError(f"no Go struct was found for {name}")
    return new


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("group_version", metavar="GROUP/VERSION")
    parser.add_argument("kind")
    given = parser.parse_args()
    table = json.loads(gzip.decompress(TABLE.read_bytes()))
    try:
        new = add(table, given.checkout, given.group_version, given.kind)
    except NotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False)
    TABLE.write_bytes(gzip.compress(text.encode(), mtime=0))
    print("\n".join(new) or "nothing new")
    return 0


if __name__ == "__main__":
    sys.exit(main())
