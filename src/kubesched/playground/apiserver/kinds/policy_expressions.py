"""The expressions of admission policies: what they may refer to, and what they must evaluate to.

``admission_kinds.py`` refuses policies whose expressions do not compile, ``admission/`` runs those that do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesched.k8s.cel import CelCompileError, Expression, compile_expression, kinds
from kubesched.k8s.cel.kinds import CelType, TypeKind

OBJECT = "Object"
JSON_PATCH = "JSONPatch"


def struct(name: str) -> CelType:
    return CelType(TypeKind.STRUCT, name)


_GROUP_KIND = dict.fromkeys(("group", "version", "kind"), kinds.STRING)
_GROUP_RESOURCE = dict.fromkeys(("group", "version", "resource"), kinds.STRING)
_STRUCTS: Mapping[str, Mapping[str, CelType]] = {
    "kubernetes.GroupVersionKind": _GROUP_KIND,
    "kubernetes.GroupVersionResource": _GROUP_RESOURCE,
    "kubernetes.UserInfo": {
        "username": kinds.STRING,
        "uid": kinds.STRING,
        "groups": kinds.list_of(kinds.STRING),
        "extra": kinds.map_of(kinds.STRING, kinds.list_of(kinds.STRING)),
    },
    "kubernetes.AdmissionRequest": {
        "kind": struct("kubernetes.GroupVersionKind"),
        "resource": struct("kubernetes.GroupVersionResource"),
        "subResource": kinds.STRING,
        "requestKind": struct("kubernetes.GroupVersionKind"),
        "requestResource": struct("kubernetes.GroupVersionResource"),
        "requestSubResource": kinds.STRING,
        "name": kinds.STRING,
        "namespace": kinds.STRING,
        "operation": kinds.STRING,
        "userInfo": struct("kubernetes.UserInfo"),
        "dryRun": kinds.BOOL,
        "options": kinds.DYN,
    },
    JSON_PATCH: {"op": kinds.STRING, "path": kinds.STRING, "from": kinds.STRING, "value": kinds.DYN},
}


class PolicyTypes:
    """The struct types of policies. `Object` and all below it may be built, with any field, where patches are made."""

    def __init__(self, variables: Mapping[str, CelType], has_patches: bool) -> None:
        self._variables = variables
        self._has_patches = has_patches

    def is_constructible(self, type_name: str) -> bool:
        return self._has_patches and (type_name == JSON_PATCH or self._is_object(type_name))

    def field_type(self, type_name: str, field: str) -> CelType | None:
        if self._is_object(type_name):
            return kinds.DYN
        fields = self._variables if type_name == "kubernetes.variables" else _STRUCTS[type_name]
        return fields.get(field)

    def _is_object(self, type_name: str) -> bool:
        return type_name == OBJECT or type_name.startswith(OBJECT + ".")


class PolicyCompiler:
    """Compiles the expressions of one policy; a variable can be used by all that is compiled after it."""

    def __init__(self, has_params: bool) -> None:
        self._variables: dict[str, CelType] = {}
        self._names: dict[str, CelType] = {
            "object": kinds.DYN,
            "oldObject": kinds.DYN,
            "request": struct("kubernetes.AdmissionRequest"),
            "namespaceObject": kinds.DYN,
            **({"params": kinds.DYN} if has_params else {}),
        }

    def compile(self, text: str, wanted: Iterable[CelType] = (), *, has_patches: bool = False) -> Expression:
        """Raises CelCompileError, also where the result cannot be of a wanted type."""
        names = {**self._names, **({"variables": struct("kubernetes.variables")} if self._variables else {})}
        compiled = compile_expression(text, names, PolicyTypes(dict(self._variables), has_patches))
        types = list(wanted)
        if types and compiled.type not in types:
            wanted_text = str(types[0]) if len(types) == 1 else f"one of [{' '.join(map(str, types))}]"
            raise CelCompileError(f"must evaluate to {wanted_text} but got {compiled.type}")
        return compiled

    def add_variable(self, name: str, text: str) -> Expression:
        compiled = self.compile(text)
        self._variables[name] = compiled.type
        return compiled
