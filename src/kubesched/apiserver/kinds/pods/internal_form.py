"""How two pod specs differ, as the API server tells it: by the lines of their internal form.

That form is not v1's: Go's names in another order, nothing left out, host namespaces within the security context.
"""

from __future__ import annotations

import difflib
import json
from typing import Any

from kubesched.apiserver.kinds.kind import Object
from kubesched.apiserver.openapi.schema_table import internal_fields

_ABSENT: dict[str, Any] = {"s": "", "i": 0, "b": False, "q": "0"}
_HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


def spec_difference(old: Object, new: Object) -> str:
    """A unified difference with three lines around each change."""
    before, after = (_lines(internal_spec(spec)) for spec in (old, new))
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return "\n".join(lines) + "\n"


def internal_spec(spec: Object) -> Object:
    moved = {name: spec[name] for name in _HOST_FIELDS if name in spec}
    context = {**spec.get("securityContext", {}), **moved}
    return _internal({**spec, "securityContext": context}, "PodSpec")


def _lines(form: Object) -> list[str]:
    text = json.dumps(form, indent=1, ensure_ascii=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.split("\n")


def _internal(value: Object, struct: str) -> Object:
    names = {name.lower(): name for name in value}
    shown: Object = {}
    for go_name, form in internal_fields(struct):
        sort, _, inner = form.partition(":")
        if sort == "e":
            shown |= _internal(value, inner)
            continue
        name = names.get(go_name.lower())
        shown[go_name] = _shown(None if name is None else value[name], sort, inner)
    return shown


def _shown(value: Any, sort: str, inner: str) -> Any:
    if value is None:
        return _internal({}, inner) if sort == "S" else _ABSENT.get(sort)
    if not inner or sort == "x":
        return value
    if isinstance(value, list):
        return [_internal(item, inner) for item in value]
    return _internal(value, inner) if isinstance(value, dict) else value
