"""What is wrong with files that volumes are made of, and with references to keys, fields and amounts of the pod.

``volumes.py`` uses it for configMap, secret, downwardAPI and projected volumes, ``container_parts.py`` for
environment variables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubesched.k8s.model import quantity
from kubesched.k8s.model.label_syntax import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.name_syntax import dns_subdomain_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_KEY = "[-._a-zA-Z0-9]+"
_LONGEST_KEY = 253
_RESOURCES = tuple(
    f"{sort}.{name}" for sort in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_MEASURED = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SUBSCRIPTED = ("metadata.annotations", "metadata.labels")
_IN_FILES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_IN_VARIABLES = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_KNOWN = frozenset((*_IN_FILES, *_IN_VARIABLES, "spec.schedulerName", "spec.restartPolicy", "status.phase"))


def mode_errors(mode: int | None, path: str) -> list[InvalidField]:
    return [] if mode is None or 0 <= mode <= 0o777 else [errors.invalid(path, mode, _MODE)]


def item_errors(items: Sequence[Object], path: str) -> list[InvalidField]:
    """Keys of a config map or secret and the paths that they get."""
    found: list[InvalidField] = []
    for position, item in enumerate(items):
        found += one_item_errors(item, errors.index(path, position))
    return found


def one_item_errors(item: Object, path: str) -> list[InvalidField]:
    found = [errors.required(f"{path}.{name}") for name in ("key", "path") if not item.get(name)]
    found += local_path_errors(item.get("path", ""), f"{path}.path")
    return found + mode_errors(item.get("mode"), f"{path}.mode")


def local_path_errors(where: str, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if where.startswith("/"):
        found.append(errors.invalid(path, where, "must be a relative path"))
    if ".." in where.split("/"):
        found.append(errors.invalid(path, where, "must not contain '..'"))
    if where.startswith("..") and not where.startswith("../") and where != "..":
        found.append(errors.invalid(path, where, "must not start with '..'"))
    return found


def downward_errors(files: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for file in files:
        if not file.get("path"):
            found.append(errors.required(f"{path}.path"))
        found += local_path_errors(file.get("path", ""), f"{path}.path")
        if "fieldRef" in file:
            found += field_errors_of(file["fieldRef"], f"{path}.fieldRef", _IN_FILES)
            if "resourceFieldRef" in file:
                why = "fieldRef and resourceFieldRef can not be specified simultaneously"
                found.append(errors.invalid(path, "resource", why))
        elif "resourceFieldRef" in file:
            found += amount_reference_errors(file["resourceFieldRef"], f"{path}.resourceFieldRef", in_volume=True)
        else:
            found.append(errors.required(path, "one of fieldRef and resourceFieldRef is required"))
        found += mode_errors(file.get("mode"), f"{path}.mode")
    return found


def variable_field_errors(reference: Object, path: str) -> list[InvalidField]:
    return field_errors_of(reference, path, _IN_VARIABLES)


def field_errors_of(reference: Object, path: str, allowed: Sequence[str]) -> list[InvalidField]:
    """A reference to a field of the pod itself."""
    field = reference.get("fieldPath", "")
    if not reference.get("apiVersion"):
        return [errors.required(f"{path}.apiVersion")]
    if not field:
        return [errors.required(f"{path}.fieldPath")]
    if reference["apiVersion"] != "v1":
        why = f"error converting fieldPath: unsupported pod version: {reference['apiVersion']}"
        return [errors.invalid(f"{path}.fieldPath", field, why)]
    subscript = re.fullmatch(r"([^\[]+)\['(.*)'\]", field)
    if subscript:
        if subscript[1] not in _SUBSCRIPTED:
            return [errors.invalid(f"{path}.fieldPath", field, "does not support subscript")]
        return errors.all_invalid(path, subscript[2], label_key_errors(subscript[2].lower()))
    if field not in _KNOWN:
        why = f"error converting fieldPath: field label not supported: {field}"
        return [errors.invalid(f"{path}.fieldPath", field, why)]
    return [] if field in allowed else [errors.unsupported(f"{path}.fieldPath", field, sorted(allowed))]


def amount_reference_errors(reference: Object, path: str, in_volume: bool) -> list[InvalidField]:
    """A reference to a limit or request of a container."""
    name = reference.get("resource", "")
    found: list[InvalidField] = []
    if in_volume and not reference.get("containerName"):
        found.append(errors.required(f"{path}.containerName"))
    elif not name:
        found.append(errors.required(f"{path}.resource"))
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        found.append(errors.unsupported(f"{path}.resource", name, _RESOURCES))
    return found + _divisor_errors(name, reference.get("divisor", "0"), f"{path}.divisor")


def _divisor_errors(name: str, divisor: str, path: str) -> list[InvalidField]:
    if quantity.parse(divisor).nanos == 0:
        return []
    sort = name.partition(".")[2]
    if sort == "cpu" and name in _RESOURCES and divisor not in ("1m", "1"):
        return [errors.invalid(path, name, "only divisor's values 1m and 1 are supported with the cpu resource")]
    resource = "hugepages" if name.startswith(_HUGE_PAGES) else _MEASURED.get(sort) if name in _RESOURCES else None
    if resource is None or divisor in _DIVISORS:
        return []
    listed = ", ".join(_DIVISORS)
    why = f"only divisor's values {listed} are supported with the {resource} resource"
    return [errors.invalid(path, name, why)]


def key_reference_errors(reference: Object, path: str) -> list[InvalidField]:
    """A reference to a key of a config map or secret."""
    name, key = reference.get("name", ""), reference.get("key", "")
    found = errors.all_invalid(f"{path}.name", name, dns_subdomain_errors(name))
    if not key:
        return [*found, errors.required(f"{path}.key")]
    return found + errors.all_invalid(f"{path}.key", key, key_errors(key))


def key_errors(key: str) -> list[str]:
    found: list[str] = []
    if len(key) > _LONGEST_KEY:
        found.append(f"must be no more than {_LONGEST_KEY} bytes")
    if not re.fullmatch(_KEY, key):
        examples = "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is"
        found.append(
            f"a valid config key must consist of alphanumeric characters, '-', '_' or '.' {examples} '{_KEY}')"
        )
    if key == "." or key == "..":
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return found
