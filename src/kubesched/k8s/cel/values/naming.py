"""What the type of a value is called: in CEL, and in the Go code whose messages users know.

Next: `go_text` writes the values themselves.
"""

from __future__ import annotations

from kubesched.k8s.cel.values.opaque import OpaqueValue
from kubesched.k8s.cel.values.scalars import CelDuration, CelOptional, CelTimestamp, TypeValue, Uint

_NAMES: dict[type, tuple[str, str]] = {
    bool: ("bool", "types.Bool"),
    bytes: ("bytes", "types.Bytes"),
    float: ("double", "types.Double"),
    int: ("int", "types.Int"),
    list: ("list", "*types.baseList"),
    str: ("string", "types.String"),
    type(None): ("null_type", "types.Null"),
    CelDuration: ("google.protobuf.Duration", "types.Duration"),
    CelOptional: ("optional_type", "*types.Optional"),
    CelTimestamp: ("google.protobuf.Timestamp", "types.Timestamp"),
    TypeValue: ("type", "*types.Type"),
    Uint: ("uint", "types.Uint"),
}


PYTHON_TYPES: dict[str, type] = {names[0]: python_type for python_type, names in _NAMES.items()}
"""The Python type of the values of a CEL type, where there is just one."""


def type_name(value: object) -> str:
    """The name of a value's type in CEL."""
    names = _NAMES.get(type(value))
    if names is not None:
        return names[0]
    return value.type_name if isinstance(value, OpaqueValue) else "map"


def go_type_name(value: object) -> str:
    """The name of a value's type in cel-go or Kubernetes."""
    names = _NAMES.get(type(value))
    if names is not None:
        return names[1]
    return value.go_name if isinstance(value, OpaqueValue) else "*types.baseMap"
