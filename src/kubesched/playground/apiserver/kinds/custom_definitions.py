"""CustomResourceDefinitions themselves: their defaults, and what is wrong with them, in the real server's words.

``structural_schemas.py`` looks at their schemas; ``custom.py`` serves the kinds that they define.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_1035_label_errors, dns_subdomain_errors
from kubesched.playground.apiserver.kinds.serving import DEFAULT_COLUMNS, KindRules
from kubesched.playground.apiserver.kinds.structural_schemas import schema_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object, WriteContext

_SCOPES = ("Cluster", "Namespaced")
_STRATEGIES = ("None", "Webhook")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8
_LONGEST_WARNING = 256


def _set_defaults(obj: Object) -> None:
    spec = obj["spec"]
    names = spec["names"]
    if names.get("kind"):
        if not names.get("singular"):
            names["singular"] = names["kind"].lower()
        if not names.get("listKind"):
            names["listKind"] = names["kind"] + "List"
    spec.setdefault("conversion", {"strategy": "None"})


def _prepare_create(obj: Object, _: WriteContext) -> None:
    """The status of a definition whose names nobody has looked at yet."""
    versions = obj["spec"].get("versions") or []
    stored = [version["name"] for version in versions if version.get("storage")]
    obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


def _prepare_update(obj: Object, old: Object, ctx: WriteContext) -> None:
    """A version that becomes the one in which objects are stored is remembered."""
    if ctx.subresource:
        return
    stored = list((old.get("status") or {}).get("storedVersions") or [])
    for version in obj["spec"].get("versions") or []:
        if version.get("storage") and version["name"] not in stored:
            stored.append(version["name"])
    obj.setdefault("status", {})["storedVersions"] = stored


def _validate(obj: Object, old: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    group, versions = spec.get("group", ""), spec.get("versions") or []
    wanted = f"{spec['names'].get('plural', '')}.{group}"
    name = obj["metadata"].get("name", "")
    found: list[InvalidField] = []
    if name != wanted:
        found.append(errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    found += _group_errors(group) + _choice_errors(spec.get("scope", ""), _SCOPES, "spec.scope")
    for position, version in enumerate(versions):
        if "openAPIV3Schema" not in (version.get("schema") or {}):
            found.append(errors.required(f"{errors.index('spec.versions', position)}.schema.openAPIV3Schema"))
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions]
    is_shared = bool(schemas) and all(schema == schemas[0] for schema in schemas)
    for position, version in enumerate(versions):
        at = errors.index("spec.versions", position)
        if problems := dns_1035_label_errors(version.get("name", "")):
            found.append(errors.invalid(f"{at}.name", version.get("name", ""), ",".join(problems)))
        found += _version_errors(version, at, has_own_schema=not is_shared)
    found += _storage_errors(versions) + _name_errors(spec["names"])
    if is_shared and schemas[0] is not None:
        found += schema_errors(schemas[0], "spec.validation.openAPIV3Schema")
    found += _choice_errors(
        (spec.get("conversion") or {}).get("strategy", "None"), _STRATEGIES, "spec.conversion.strategy"
    )
    return found + (_change_errors(obj, old) if old is not None else [])


def _group_errors(group: str) -> list[InvalidField]:
    if not group:
        return [errors.required("spec.group")]
    if problems := dns_subdomain_errors(group):
        return [errors.invalid("spec.group", group, ",".join(problems))]
    if "." not in group:
        return [errors.invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _choice_errors(value: str, allowed: Iterable[str], path: str) -> list[InvalidField]:
    if not value:
        return [errors.required(path)]
    return [] if value in allowed else [errors.unsupported(path, value, allowed)]


def _storage_errors(versions: list[Object]) -> list[InvalidField]:
    found: list[InvalidField] = []
    names = [version.get("name") for version in versions]
    if len(set(names)) < len(names):
        found.append(errors.invalid("spec.versions", names, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        found.append(errors.invalid("spec.versions", names, why))
    return found


def _name_errors(names: Object) -> list[InvalidField]:
    found = [errors.required(f"spec.names.{n}") for n in ("plural", "singular", "kind", "listKind") if not names.get(n)]
    found += [
        errors.invalid(f"spec.names.{field}", names[field], ",".join(dns_1035_label_errors(names[field])))
        for field in ("plural", "singular")
        if names.get(field) and dns_1035_label_errors(names[field])
    ]
    for field in ("kind", "listKind"):
        if names.get(field) and (problems := dns_1035_label_errors(names[field].lower())):
            why = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            found.append(errors.invalid(f"spec.names.{field}", names[field], why))
    for field in ("shortNames", "categories"):
        for position, name in enumerate(names.get(field) or ()):
            if problems := dns_1035_label_errors(name):
                found.append(errors.invalid(errors.index(f"spec.names.{field}", position), name, ",".join(problems)))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        found.append(errors.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same"))
    return found


def _change_errors(obj: Object, old: Object) -> list[InvalidField]:
    spec, before = obj["spec"], old["spec"]
    conditions = (old.get("status") or {}).get("conditions") or ()
    is_established = any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
    found: list[InvalidField] = []
    if is_established and spec.get("scope") != before.get("scope"):
        found.append(errors.immutable("spec.scope", spec.get("scope")))
    if is_established and spec["names"].get("kind") != before["names"].get("kind"):
        found.append(errors.immutable("spec.names.kind", spec["names"].get("kind")))
    if spec.get("group") != before.get("group"):
        found.append(errors.immutable("spec.group", spec.get("group")))
    if spec["names"].get("plural") != before["names"].get("plural"):
        found.append(errors.immutable("spec.names.plural", spec["names"].get("plural")))
    served = {version.get("name") for version in spec.get("versions") or ()}
    for position, name in enumerate((obj.get("status") or {}).get("storedVersions") or ()):
        if name not in served:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions"
                f" until a storage migration ensures no data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            found.append(errors.invalid(errors.index("status.storedVersions", position), name, why))
    return found


# -- versions ----------------------------------------------------------------------------------------------------------


def _version_errors(version: Object, at: str, has_own_schema: bool) -> list[InvalidField]:
    found: list[InvalidField] = []
    warning = version.get("deprecationWarning")
    if warning is not None and not version.get("deprecated"):
        found.append(errors.invalid(f"{at}.deprecationWarning", warning, "can only be set for deprecated versions"))
    elif warning == "":
        found.append(errors.invalid(f"{at}.deprecationWarning", warning, "must not be an empty string"))
    elif warning is not None and len(warning) > _LONGEST_WARNING:
        why = f"must be <= {_LONGEST_WARNING} characters long"
        found.append(errors.invalid(f"{at}.deprecationWarning", warning, why))
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if has_own_schema and schema is not None:
        found += schema_errors(schema, f"{at}.schema.openAPIV3Schema")
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        found += _scale_errors(scale, f"{at}.subresources")
    for position, column in enumerate(version.get("additionalPrinterColumns") or ()):
        found += _column_errors(column, errors.index(f"{at}.additionalPrinterColumns", position))
    return found + _selectable_errors(version.get("selectableFields") or [], schema or {}, f"{at}.selectableFields")


def _scale_errors(scale: Object, at: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        path = scale.get(name) or ""
        if not path:
            found.append(errors.required(f"{at}.scale.{name}"))
        elif not path.startswith(root):
            why = f"should be a json path under {root.rstrip('.')}"
            found.append(errors.invalid(f"{at}.scale.{name}", path, why))
    selector = scale.get("labelSelectorPath") or ""
    if selector and not selector.startswith((".spec.", ".status.")):
        why = "should be a json path under either .spec or .status"
        found.append(errors.invalid(f"{at}.scale.labelSelectorPath", selector, why))
    return found


def _column_errors(column: Object, at: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if not column.get("name"):
        found.append(errors.required(f"{at}.name"))
    kind, form = column.get("type") or "", column.get("format") or ""
    types = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        found.append(errors.required(f"{at}.type", types))
    elif kind not in _COLUMN_TYPES:
        found.append(errors.invalid(f"{at}.type", kind, types))
    if form and form not in _COLUMN_FORMATS:
        found.append(errors.invalid(f"{at}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not column.get("jsonPath"):
        found.append(errors.required(f"{at}.JSONPath"))
    return found


def _selectable_errors(fields: list[Object], schema: Object, at: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, one in enumerate(fields):
        where, path = f"{errors.index(at, position)}.jsonPath", one.get("jsonPath") or ""
        if not path:
            found.append(errors.required(where))
            continue
        why, part = _walk(path, schema)
        if why:
            found.append(errors.invalid(where, path, f"is an invalid path: {why}"))
            continue
        if path.startswith(".metadata"):
            found.append(errors.invalid(where, path, "must not point to fields in metadata"))
        if part.get("type") not in ("string", "boolean", "integer"):
            types = "must point to a field of type string, boolean or integer."
            found.append(
                errors.invalid(where, path, f"{types} Enum string fields and strings with formats are allowed.")
            )
        if path in seen:
            found.append(errors.duplicate(where, path))
        seen.add(path)
    if len(seen) > _MOST_SELECTABLE:
        found.append(errors.too_many(at, len(seen), _MOST_SELECTABLE))
    return found


def _walk(path: str, schema: Object) -> tuple[str, Object]:
    """Why a path leads nowhere, and the schema where it leads."""
    if "[" in path:
        return "array notation is not allowed", {}
    if not path.startswith("."):
        return f"expected [ or . but got: {path.partition('.')[0]}", {}
    part: Any = schema
    for name in path[1:].split("."):
        part = (part.get("properties") or {}).get(name) if isinstance(part, dict) else None
        if part is None:
            return "does not refer to a valid field", {}
    return "", part


_STATUS_RULES: dict[str, Callable[[Object, Object], list[InvalidField]]] = {"status": lambda _, __: []}

DEFINITION = KindRules(
    set_defaults=_set_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate=_validate,
    validate_through=_STATUS_RULES,
    columns=DEFAULT_COLUMNS,
)
