"""Whether an applied configuration fits the schema of its kind, in the words of the real server.

Unlike other writes, apply refuses unknown fields, wrong types and list items that repeat a key, all with code 500 as
the real server does.
"""

from __future__ import annotations

from typing import Any

from kubesched.apiserver.errors import StatusError
from kubesched.apiserver.kinds.kind import Object, ServedResource
from kubesched.apiserver.openapi.struct_types import ValueType
from kubesched.apiserver.patching.apply.field_sets import print_path
from kubesched.apiserver.patching.apply.typed_lists import is_granular, named_items

_FORMS: dict[str, tuple[type[Any], ...]] = {
    "string": (str,),
    "time": (str,),
    "micro-time": (str,),
    "bytes": (str,),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
    "struct": (dict,),
    "map": (dict,),
    "list": (list,),
}
_WORDS = {
    "struct": "map",
    "map": "map",
    "list": "list",
    "integer": "numeric (int or float)",
    "number": "numeric (int or float)",
}


def check_configuration(applied: Object, kind_type: ValueType, resource: ServedResource) -> None:
    """Raises StatusError if the configuration does not fit."""
    mistakes: list[str] = []
    _check(applied, kind_type, "", mistakes)
    if not mistakes:
        return
    meta = applied.get("metadata")
    name = meta.get("name", "") if isinstance(meta, dict) else ""
    namespace = meta.get("namespace", "") if isinstance(meta, dict) else ""
    name = name if isinstance(name, str) else ""
    kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
    why = mistakes[0] if len(mistakes) == 1 else "errors:\n" + "".join(f"  {one}\n" for one in mistakes)
    raise StatusError(500, "", f"failed to create typed patch object ({namespace}/{name}; {kind}): {why}")


def _check(value: Any, of: ValueType, path: str, mistakes: list[str]) -> None:
    if value is None or of.form in ("any", "quantity", "int-or-string"):
        return
    wanted = _FORMS[of.form]
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        word = _WORDS.get(of.form, of.form if of.form != "micro-time" and of.form != "time" else "string")
        mistakes.append(f"{path}: expected {word}, got {_go_value(value)}")
    elif of.form == "struct":
        for name, part in value.items():
            known = of.fields.get(name)
            if known is None:
                mistakes.append(f"{path}.{name}: field not declared in schema")
            else:
                _check(part, known.type, f"{path}.{name}", mistakes)
    elif of.form == "map" and of.element is not None:
        for name, part in value.items():
            _check(part, of.element, f"{path}.{name}", mistakes)
    elif of.form == "list":
        _check_list(value, of, path, mistakes)


def _check_list(items: list[Any], of: ValueType, path: str, mistakes: list[str]) -> None:
    element = of.element
    assert element is not None
    if not is_granular(items, of):
        for position, item in enumerate(items):
            _check(item, element, f"{path}[{position}]", mistakes)
        return
    seen: set[str] = set()
    for name, item in named_items(items, of):
        printed = print_path((name,))
        if name in seen:
            mistakes.append(f"{path}: duplicate entries for key {printed}")
        seen.add(name)
        _check(item, element, f"{path}{printed}", mistakes)


def _go_value(value: Any) -> str:
    shown = (
        str(value).lower() if isinstance(value, bool) else repr(value) if not isinstance(value, str) else f'"{value}"'
    )
    return f"&value.valueUnstructured{{Value:{shown}}}"
