"""The schema of a custom resource at work: it drops unknown fields, sets defaults, and says what is wrong with values.

Structural schemas as definitions carry them. What keeps unknown fields keeps them, but what it names itself is looked
at all the same; objects within the object keep what every object has.

Server-side apply walks objects by the type that the schema's own words give: ``x-kubernetes-list-type``,
``x-kubernetes-list-map-keys``, ``x-kubernetes-map-type``. What keeps unknown fields is walked without a schema.

Types, bounds, formats, junctors and list types are validated in the words of the real server, whose validator tells of
junctors (``anyOf`` and the like) without naming a field. Read ``custom_rules.py`` for rules in CEL.
"""

from __future__ import annotations

import base64
import binascii
import copy
import ipaddress
import json
import re
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from kubesched.k8s.cel.library.times import parse_duration, parse_timestamp
from kubesched.k8s.patterns import PatternError, PatternWorkError, compile_pattern
from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors, dns_subdomain_errors
from kubesched.playground.apiserver.openapi.schemas import ANY, FieldType, ValueType, struct_type
from kubesched.playground.apiserver.served_resource import InvalidField, Object

KEEP = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
EVERY_OBJECT_HAS = ("apiVersion", "kind", "metadata")
_KEEPS_ALL: Object = {KEEP: True}


def shape(obj: Object, schema: Object) -> list[str]:
    """Drops what the schema does not know and sets its defaults, in place; returns the paths of what was dropped."""
    unknown: list[str] = []
    _prune(obj, schema, "", unknown, is_object=True)
    set_defaults(obj, schema)
    return unknown


def from_storage(schema: Object) -> Callable[[Object], Object] | None:
    """What is done to stored objects that are read: the schema may be another one than when they were written."""
    if not schema or schema == {"type": "object", KEEP: True}:
        return None

    def read(obj: Object) -> Object:
        shape(obj, schema)
        return obj

    return read


def _prune(value: Any, schema: Object, path: str, unknown: list[str], *, is_object: bool) -> None:
    if isinstance(value, list):
        items = schema.get("items")
        for position, item in enumerate(value if isinstance(items, dict) else ()):
            _prune(item, items or {}, f"{path}[{position}]", unknown, is_object=bool((items or {}).get(EMBEDDED)))
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    keeps = schema.get(KEEP) or others is True or not schema
    for name in list(value):
        inner = f"{path}.{name}" if path else name
        part = properties.get(name, others if isinstance(others, dict) else None)
        if is_object and name in EVERY_OBJECT_HAS:
            continue
        if part is not None:
            _prune(value[name], part, inner, unknown, is_object=bool(part.get(EMBEDDED)))
        elif not keeps:
            del value[name]
            unknown.append(inner)


def set_defaults(value: Any, schema: Object) -> None:
    """Fields that are missing, or null where they must not be, become what the schema says."""
    if isinstance(value, list):
        for item in value if isinstance(schema.get("items"), dict) else ():
            set_defaults(item, schema["items"])
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    for name, part in properties.items():
        is_missing = name not in value or (value[name] is None and not part.get("nullable"))
        if "default" in part and is_missing:
            value[name] = copy.deepcopy(part["default"])
        if name in value:
            set_defaults(value[name], part)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        for name in value:
            if name not in properties:
                if value[name] is None and "default" in others and not others.get("nullable"):
                    value[name] = copy.deepcopy(others["default"])
                set_defaults(value[name], others)


_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_STRING = ValueType("string")


def custom_type(schema: Object) -> ValueType:
    """The type of whole objects; their metadata is that of all kinds."""
    if not schema.get("properties"):
        return ANY
    of = _type(schema)
    if of.form != "struct" or of.own_fields is None:
        return ANY
    head = {"apiVersion": _STRING, "kind": _STRING, "metadata": struct_type(_OBJECT_META)}
    of.own_fields |= {name: _field(name, inner) for name, inner in head.items()}
    return of


def _type(schema: Object) -> ValueType:
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string"):
        return ANY
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    match schema.get("type"):
        case "object" if schema.get("properties"):
            fields = {name: _field(name, _type(part), part) for name, part in schema["properties"].items()}
            return ValueType("struct", own_fields=fields, is_atomic=atomic)
        case "object":
            others = schema.get("additionalProperties")
            return ValueType("map", element=_type(others) if isinstance(others, dict) else ANY, is_atomic=atomic)
        case "array":
            return ValueType(
                "list",
                element=_type(schema.get("items") or {}),
                list_type=schema.get("x-kubernetes-list-type", "atomic"),
                map_keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
            )
        case "string" | "integer" | "number" | "boolean" as form:
            return ValueType(form)
    return ANY


def _field(name: str, of: ValueType, schema: dict[str, Any] | None = None) -> FieldType:
    default = schema.get("default") if schema else None
    return FieldType(name, of, is_pointer=True, omits_empty=True, omits_zero=False, default=default)


INT_OR_STRING = "x-kubernetes-int-or-string"
_TYPES: dict[str, tuple[type[Any], ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_WORDS = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def value_errors(value: Any, schema: Object, path: str = "", old: Any = None) -> list[InvalidField]:
    """Everything that the schema finds wrong with a value; what is within and as it was before is let be."""
    if value is None and schema.get("nullable"):
        return []
    wanted = "integer,string" if schema.get(INT_OR_STRING) else schema.get("type", "")
    if wanted and not any(_is(value, one) for one in wanted.split(",")):
        word = _WORDS.get(type(value), "null")
        message = f'Invalid value: "{word}": {path} in body must be of type {wanted}: "{word}"'
        return [InvalidField("FieldValueTypeInvalid", path, message)]
    found = _junctor_errors(value, schema, path)
    if isinstance(value, str):
        found += _text_errors(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found += _number_errors(value, schema, path)
    elif isinstance(value, list):
        found += _list_errors(value, schema, path, old)
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        shown = [one if isinstance(one, str) else json.dumps(one, separators=(",", ":")) for one in schema["enum"]]
        found.append(errors.unsupported(path, value, shown))
    if isinstance(value, dict):
        found += _object_errors(value, schema, path, old)
    return found


def _is(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    if isinstance(value, float) and wanted == "integer":
        return value.is_integer()
    return wanted not in _TYPES or isinstance(value, _TYPES[wanted])


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON, where true is not 1."""
    return type(one) is type(other) and bool(one == other) if isinstance(one, bool | str) else bool(one == other)


# -- junctors ----------------------------------------------------------------------------------------------------------


def _junctor_errors(value: Any, schema: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if schema.get("anyOf"):
        results = [value_errors(value, one, path) for one in schema["anyOf"]]
        if all(results):
            found += [_nameless(f"{quoted(path)} must validate at least one schema (anyOf)"), *results[0]]
    if schema.get("oneOf"):
        results = [value_errors(value, one, path) for one in schema["oneOf"]]
        n_valid = sum(not result for result in results)
        if n_valid != 1:
            how_many = f"Found {n_valid} valid alternatives" if n_valid else "Found none valid"
            found.append(_nameless(f"{quoted(path)} must validate one and only one schema (oneOf). {how_many}"))
            found += [] if n_valid else results[0]
    if schema.get("allOf"):
        results = [value_errors(value, one, path) for one in schema["allOf"]]
        found += [wrong for result in results for wrong in result]
        if any(results):
            none = ". None validated" if all(results) else ""
            found.append(_nameless(f"{quoted(path)} must validate all the schemas (allOf){none}"))
    if "not" in schema and not value_errors(value, schema["not"], path):
        found.append(_nameless(f"{quoted(path)} must not validate the schema (not)"))
    return found


def _nameless(why: str) -> InvalidField:
    return errors.invalid("<nil>", "", why)


# -- values of each type -----------------------------------------------------------------------------------------------


def _text_errors(value: str, schema: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if len(value) > schema.get("maxLength", len(value)):
        found.append(errors.too_long(path, schema["maxLength"]))
    if len(value) < schema.get("minLength", 0):
        found.append(errors.invalid(path, value, f"{path} in body should be at least {schema['minLength']} chars long"))
    if schema.get("pattern"):
        found += _pattern_errors(value, schema["pattern"], path)
    is_format = _FORMATS.get(schema.get("format", "").replace("-", ""))
    if is_format is not None and not is_format(value):
        why = f"{path} in body must be of type {schema['format']}: {quoted(value)}"
        found.append(InvalidField("FieldValueTypeInvalid", path, f"Invalid value: {quoted(value)}: {why}"))
    return found


def _pattern_errors(value: str, pattern: str, path: str) -> list[InvalidField]:
    try:
        if compile_pattern(pattern).is_found_in(value):
            return []
        wanted = f"'{pattern}'"
    except PatternError as error:
        wanted = f"'{pattern}, but pattern is invalid: {error}'"
    except PatternWorkError as error:
        wanted = f"'{pattern}', but {error}"
    return [errors.invalid(path, value, f"{path} in body should match {wanted}")]


def _number_errors(value: float, schema: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []

    def refuse(why: str) -> None:
        found.append(errors.invalid(path, value, f"{path} in body should be {why}"))

    factor, most, least = schema.get("multipleOf"), schema.get("maximum"), schema.get("minimum")
    if factor and abs(value / factor - round(value / factor)) > 1e-9:
        refuse(f"a multiple of {_number(factor)}")
    if most is not None and (value >= most if schema.get("exclusiveMaximum") else value > most):
        refuse(f"less than {'' if schema.get('exclusiveMaximum') else 'or equal to '}{_number(most)}")
    if least is not None and (value <= least if schema.get("exclusiveMinimum") else value < least):
        refuse(f"greater than {'' if schema.get('exclusiveMinimum') else 'or equal to '}{_number(least)}")
    bits = {"int32": 31, "int64": 63}.get(schema.get("format", "")) if schema.get("type") == "integer" else None
    if bits is not None and not -(2**bits) <= value < 2**bits:
        found.append(errors.invalid(path, value, f"Checked value must be of type {schema['format']}"))
    return found


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _list_errors(value: list[Any], schema: Object, path: str, old: Any) -> list[InvalidField]:
    found: list[InvalidField] = []
    items = schema.get("items")
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    known = {_key(_identity(item, keys)): item for item in old} if keys and isinstance(old, list) else {}
    for position, item in enumerate(value if isinstance(items, dict) else ()):
        before = known.get(_key(_identity(item, keys))) if known else None
        if before is None or before != item:
            found += value_errors(item, items or {}, errors.index(path, position), before)
    if len(value) < schema.get("minItems", 0):
        why = f"{path} in body should have at least {schema['minItems']} items"
        found.append(errors.invalid(path, len(value), why))
    if len(value) > schema.get("maxItems", len(value)):
        found.append(errors.too_many(path, len(value), schema["maxItems"]))
    if schema.get("uniqueItems") and len({_key(item) for item in value}) < len(value):
        found.append(errors.invalid(path, value, f"{path} in body shouldn't contain duplicates"))
    return found


def _object_errors(value: Object, schema: Object, path: str, old: Any) -> list[InvalidField]:
    before = old if isinstance(old, dict) else {}
    found: list[InvalidField] = []
    if len(value) < schema.get("minProperties", 0):
        why = f"{path} in body should have at least {schema['minProperties']} properties"
        found.append(errors.invalid(path, len(value), why))
    if len(value) > schema.get("maxProperties", len(value)):
        found.append(errors.too_many(path, len(value), schema["maxProperties"]))
    is_whole = not path or bool(schema.get(EMBEDDED))
    needed = [name for name in schema.get("required") or () if not (is_whole and name in EVERY_OBJECT_HAS)]
    found += [errors.required(errors.child(path, name)) for name in needed if name not in value]
    if path and schema.get(EMBEDDED):
        empty = [name for name in ("apiVersion", "kind") if not value.get(name)]
        found += [errors.required(errors.child(path, name), "must not be empty") for name in empty]
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, part in value.items():
        inner = properties.get(name, others if isinstance(others, dict) else None)
        is_as_before = name in before and before[name] == part
        if inner is not None and not is_as_before and not (is_whole and name in EVERY_OBJECT_HAS):
            found += value_errors(part, inner, errors.child(path, name), before.get(name))
    return found


# -- formats -----------------------------------------------------------------------------------------------------------


def _parses(parse: Callable[[str], object], *wrong: type[Exception]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except wrong:
            return False
        return True

    return check


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def _is_cidr(text: str) -> bool:
    return "/" in text and _parses(lambda one: ipaddress.ip_network(one, strict=False), ValueError)(text)


def _is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _is_base64(text: str) -> bool:
    return _parses(lambda one: base64.b64decode(one, validate=True), binascii.Error, ValueError)(text)


_HEX = "[0-9a-f]"
_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_FORMATS: dict[str, Callable[[str], bool]] = {
    "ipv4": _parses(ipaddress.IPv4Address, ValueError),
    "ipv6": _parses(ipaddress.IPv6Address, ValueError),
    "cidr": _is_cidr,
    "mac": _matches(f"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}"),
    "uuid": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid3": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid4": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "uuid5": _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "uri": _is_uri,
    "email": _matches(r"[^@\s<>]+@[^@\s<>]+"),
    "hostname": _matches(rf"(?=.{{1,253}}\.?$){_LABEL}(\.{_LABEL})*\.?"),
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "byte": _is_base64,
    "date": lambda text: bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and _parses(date.fromisoformat, ValueError)(text),
    "duration": lambda text: parse_duration(text) is not None,
    "datetime": lambda text: parse_timestamp(text) is not None,
    "k8sshortname": lambda text: not dns_label_errors(text),
    "k8slongname": lambda text: not dns_subdomain_errors(text),
}
"""By their names without hyphens; others mean nothing."""


# -- list types --------------------------------------------------------------------------------------------------------


def list_type_errors(value: Any, schema: Object, path: str = "") -> list[InvalidField]:
    """What is twice in a set, or twice under the same keys in a list that is a map."""
    found: list[InvalidField] = []
    if isinstance(value, list):
        match schema.get("x-kubernetes-list-type"):
            case "set":
                found += [errors.duplicate(errors.index(path, at), value[at]) for at in _repeated(value)]
            case "map":
                found += _map_list_errors(value, schema.get("x-kubernetes-list-map-keys") or (), path)
        for position, item in enumerate(value if isinstance(schema.get("items"), dict) else ()):
            found += list_type_errors(item, schema["items"], errors.index(path, position))
    elif isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, part in value.items():
            if name in properties:
                found += list_type_errors(part, properties[name], errors.child(path, name))
            elif isinstance(others, dict):
                found += list_type_errors(part, others, errors.key(path, name))
    return found


def _map_list_errors(value: list[Any], keys: Iterable[str], path: str) -> list[InvalidField]:
    for position, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            why = "must be an object for an array of list-type map"
            return [errors.invalid(errors.index(path, position), item, why)]
    identities = [_identity(item, keys) for item in value]
    return [errors.duplicate(errors.index(path, at), identities[at]) for at in _repeated(identities)]


def _identity(item: Any, keys: Iterable[str]) -> Object:
    return {key: item[key] for key in keys if key in item} if isinstance(item, dict) else {}


def _repeated(values: list[Any]) -> list[int]:
    """Where something stands for the second time; a third time is not told."""
    seen: dict[str, int] = {}
    found: list[int] = []
    for position, value in enumerate(values):
        key = _key(value)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(position)
    return found


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
