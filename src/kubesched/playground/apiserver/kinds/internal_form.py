"""Objects as the API server shows them in its messages: in the form that it uses inside, not in that of a version.

There fields have Go's names, nothing is left out, and a pod's host namespaces lie within the security context. How two
pod specs differ is told by the lines of this form. ``schemas.internal_fields`` has the structs.
"""

from __future__ import annotations

import difflib
import json
from typing import Any

from kubesched.playground.apiserver.openapi.schemas import internal_fields
from kubesched.playground.apiserver.served_resource import Object

_METADATA = "metav1.ObjectMeta"
_ABSENT: dict[str, Any] = {"s": "", "i": 0, "b": False, "q": "0"}


def internal_form(value: Object, struct: str) -> Object:
    """``value`` as the struct of that name ("PodSpec", "resource.ResourceClaimSpec") would be shown."""
    names = {name.lower(): name for name in value}
    shown: Object = {}
    for field in internal_fields(struct):
        sort, _, inner = field.form.partition(":")
        if sort == "e":
            shown |= _metadata(value) if inner == _METADATA else internal_form(value, inner)
            continue
        name = names.get((field.json_name or field.go_name).lower())
        shown[field.go_name] = _shown(None if name is None else value[name], sort, inner)
    return shown


def _metadata(value: Object) -> Object:
    """Metadata that a template embeds: it has the same form everywhere."""
    return {name: part for name, part in (value.get("metadata") or {}).items() if part}


def _shown(value: Any, sort: str, inner: str) -> Any:
    if value is None:
        return internal_form({}, inner) if sort == "S" else _ABSENT.get(sort)
    if not inner or sort == "x":
        return value
    if isinstance(value, list):
        return [internal_form(item, inner) for item in value]
    return internal_form(value, inner) if isinstance(value, dict) else value


def difference(old: Object, new: Object, struct: str) -> str:
    """How two values differ, by the lines of their internal form."""
    return line_difference(internal_form(old, struct), internal_form(new, struct))


def line_difference(old: Object, new: Object) -> str:
    """A unified difference with three lines around each change."""
    lines = list(difflib.unified_diff(_lines(old), _lines(new), lineterm="", n=3))[2:]
    return "\n".join(lines) + "\n"


def _lines(form: Object) -> list[str]:
    text = json.dumps(form, indent=1, ensure_ascii=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.split("\n")


_HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


def spec_difference(old: Object, new: Object) -> str:
    return line_difference(internal_spec(old), internal_spec(new))


def internal_spec(spec: Object) -> Object:
    moved = {name: spec[name] for name in _HOST_FIELDS if name in spec}
    context = {**spec.get("securityContext", {}), **moved}
    return internal_form({**spec, "securityContext": context}, "PodSpec")
