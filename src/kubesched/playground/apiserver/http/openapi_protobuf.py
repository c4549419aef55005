"""The OpenAPI v2 document as protobuf: the form in which kubectl and client-go ask for it.

The messages are those of gnostic's ``openapi.v2.Document``. A table names the fields of each, by the keys that the
document has in JSON; what is one of several messages is chosen by ``_CHOICES``. Values of any form (extensions,
enumerations, defaults) are sent as text that is YAML: JSON is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kubesched.playground.apiserver.http.protobuf import bytes_field, double_field, integer_field

_Fields = dict[str, tuple[int, str]]
"""Number and form of each field: text, truth, integer, double, any, or a message. "[]": repeated; "{}": a message
whose first field repeats pairs of name and value."""


def _limits(first: int) -> _Fields:
    """What is said of numbers and lengths, in the order that all simple parameters share."""
    forms = (
        ("default", "any"),
        ("maximum", "double"),
        ("exclusiveMaximum", "truth"),
        ("minimum", "double"),
        ("exclusiveMinimum", "truth"),
        ("maxLength", "integer"),
        ("minLength", "integer"),
        ("pattern", "text"),
        ("maxItems", "integer"),
        ("minItems", "integer"),
        ("uniqueItems", "truth"),
        ("enum", "[]any"),
        ("multipleOf", "double"),
    )
    return {name: (first + at, form) for at, (name, form) in enumerate(forms)}


def _parameter(first: int) -> _Fields:
    """A parameter in the path, query or headers; ``first`` is the number of its type."""
    return {
        "required": (1, "truth"),
        "in": (2, "text"),
        "description": (3, "text"),
        "name": (4, "text"),
        "type": (first, "text"),
        "format": (first + 1, "text"),
        "collectionFormat": (first + 3, "text"),
        **_limits(first + 4),
        "x-": (first + 17, "extensions"),
    }


_MESSAGES: dict[str, _Fields] = {
    "Document": {
        "swagger": (1, "text"),
        "info": (2, "Info"),
        "paths": (8, "Paths"),
        "definitions": (9, "{}Schema"),
        "security": (12, "[]SecurityRequirement"),
        "securityDefinitions": (13, "{}SecurityDefinition"),
    },
    "Info": {"title": (1, "text"), "version": (2, "text"), "description": (3, "text")},
    "ApiKeySecurity": {"type": (1, "text"), "name": (2, "text"), "in": (3, "text"), "description": (4, "text")},
    "PathItem": {
        "get": (2, "Operation"),
        "put": (3, "Operation"),
        "post": (4, "Operation"),
        "delete": (5, "Operation"),
        "options": (6, "Operation"),
        "head": (7, "Operation"),
        "patch": (8, "Operation"),
        "parameters": (9, "[]ParameterChoice"),
        "x-": (10, "extensions"),
    },
    "Operation": {
        "tags": (1, "[]text"),
        "summary": (2, "text"),
        "description": (3, "text"),
        "operationId": (5, "text"),
        "produces": (6, "[]text"),
        "consumes": (7, "[]text"),
        "parameters": (8, "[]ParameterChoice"),
        "responses": (9, "{}ResponseChoice"),
        "schemes": (10, "[]text"),
        "deprecated": (11, "truth"),
        "x-": (13, "extensions"),
    },
    "Response": {"description": (1, "text"), "schema": (2, "SchemaChoice"), "x-": (5, "extensions")},
    "BodyParameter": {
        "description": (1, "text"),
        "name": (2, "text"),
        "in": (3, "text"),
        "required": (4, "truth"),
        "schema": (5, "Schema"),
    },
    "QueryParameter": _parameter(6),
    "PathParameter": _parameter(5),
    "HeaderParameter": _parameter(5),
    "Schema": {
        "$ref": (1, "text"),
        "format": (2, "text"),
        "title": (3, "text"),
        "description": (4, "text"),
        "default": (5, "any"),
        "multipleOf": (6, "double"),
        "maximum": (7, "double"),
        "exclusiveMaximum": (8, "truth"),
        "minimum": (9, "double"),
        "exclusiveMinimum": (10, "truth"),
        "maxLength": (11, "integer"),
        "minLength": (12, "integer"),
        "pattern": (13, "text"),
        "maxItems": (14, "integer"),
        "minItems": (15, "integer"),
        "uniqueItems": (16, "truth"),
        "maxProperties": (17, "integer"),
        "minProperties": (18, "integer"),
        "required": (19, "[]text"),
        "enum": (20, "[]any"),
        "additionalProperties": (21, "SchemaOrTruth"),
        "type": (22, "Texts"),
        "items": (23, "Items"),
        "allOf": (24, "[]Schema"),
        "properties": (25, "{}Schema"),
        "discriminator": (26, "text"),
        "readOnly": (27, "truth"),
        "externalDocs": (29, "ExternalDocs"),
        "example": (30, "any"),
        "x-": (31, "extensions"),
    },
    "ExternalDocs": {"description": (1, "text"), "url": (2, "text")},
}


def encode_document(document: dict[str, Any]) -> bytes:
    """The whole document."""
    return _message(document, "Document")


def _message(value: Any, form: str) -> bytes:
    choose = _CHOICES.get(form)
    return choose(value) if choose is not None else b"".join(_fields(value, _MESSAGES[form]))


def _fields(value: dict[str, Any], known: _Fields) -> Iterable[bytes]:
    for name, (number, form) in known.items():
        if form == "extensions":
            for extension in sorted(key for key in value if key.startswith("x-")):
                yield _named(number, extension, _any(value[extension]))
        elif name in value:
            yield _field(number, form, value[name])


def _field(number: int, form: str, value: Any) -> bytes:
    if form.startswith("[]"):
        return b"".join(_field(number, form[2:], item) for item in value)
    if form.startswith("{}"):
        return bytes_field(number, b"".join(_named(1, name, _message(part, form[2:])) for name, part in value.items()))
    match form:
        case "text":
            return bytes_field(number, value.encode())
        case "truth" | "integer":
            return integer_field(number, int(value))
        case "double":
            return double_field(number, value)
        case "any":
            return bytes_field(number, _any(value))
    return bytes_field(number, _message(value, form))


def _named(number: int, name: str, value: bytes) -> bytes:
    return bytes_field(number, bytes_field(1, name.encode()) + bytes_field(2, value))


def _any(value: Any) -> bytes:
    return bytes_field(2, msgspec.json.encode(value) + b"\n")


def _paths(value: dict[str, Any]) -> bytes:
    return b"".join(_named(2, path, _message(item, "PathItem")) for path, item in value.items())


def _parameter_choice(value: dict[str, Any]) -> bytes:
    """A parameter or a reference to one; of parameters, the body or another, by its place."""
    if "$ref" in value:
        return bytes_field(2, bytes_field(1, value["$ref"].encode()))
    if value["in"] == "body":
        return bytes_field(1, bytes_field(1, _message(value, "BodyParameter")))
    number, form = {"header": (1, "HeaderParameter"), "path": (4, "PathParameter")}.get(
        value["in"], (3, "QueryParameter")
    )
    return bytes_field(1, bytes_field(2, bytes_field(number, _message(value, form))))


def _schema_or_truth(value: Any) -> bytes:
    return integer_field(2, value) if isinstance(value, bool) else bytes_field(1, _message(value, "Schema"))


def _items(value: Any) -> bytes:
    schemas = value if isinstance(value, list) else [value]
    return b"".join(bytes_field(1, _message(schema, "Schema")) for schema in schemas)


def _texts(value: Any) -> bytes:
    return b"".join(bytes_field(1, text.encode()) for text in (value if isinstance(value, list) else [value]))


_CHOICES: dict[str, Callable[[Any], bytes]] = {
    "Paths": _paths,
    "ParameterChoice": _parameter_choice,
    "ResponseChoice": lambda value: bytes_field(1, _message(value, "Response")),
    "SchemaChoice": lambda value: bytes_field(1, _message(value, "Schema")),
    "SchemaOrTruth": _schema_or_truth,
    "Items": _items,
    "Texts": _texts,
    "SecurityDefinition": lambda value: bytes_field(2, _message(value, "ApiKeySecurity")),
    "SecurityRequirement": lambda value: b"".join(_named(1, name, _texts(scopes)) for name, scopes in value.items()),
}
"""Messages that are more, or less, than their fields by name."""
