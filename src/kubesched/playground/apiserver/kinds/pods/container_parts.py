"""What is wrong with a container's ports, environment, volume mounts and devices."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.name_syntax import (
    dns_subdomain_errors,
    port_name_errors,
    port_number_errors,
)
from kubesched.playground.apiserver.kinds.pods import files
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def port_errors(ports: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    names: set[str] = set()
    for position, port in enumerate(ports):
        at = errors.index(path, position)
        if name := port.get("name", ""):
            problems = port_name_errors(name)
            found += errors.all_invalid(f"{at}.name", name, problems)
            if not problems and name in names:
                found.append(errors.duplicate(f"{at}.name", name))
            names.add(name)
        if not port.get("containerPort"):
            found.append(errors.required(f"{at}.containerPort"))
        else:
            problems = port_number_errors(port["containerPort"])
            found += errors.all_invalid(f"{at}.containerPort", port["containerPort"], problems)
        if port.get("hostPort"):
            found += errors.all_invalid(f"{at}.hostPort", port["hostPort"], port_number_errors(port["hostPort"]))
        if port.get("protocol", "") not in _PROTOCOLS:
            found.append(errors.unsupported(f"{at}.protocol", port.get("protocol", ""), _PROTOCOLS))
    return found


def host_port_conflicts(containers: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    taken: set[str] = set()
    for position, container in enumerate(containers):
        for place, port in enumerate(container.get("ports", [])):
            if not port.get("hostPort"):
                continue
            full = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if full in taken:
                at = errors.index(f"{errors.index(path, position)}.ports", place)
                found.append(errors.duplicate(f"{at}.hostPort", full))
            taken.add(full)
    return found


def env_errors(variables: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, variable in enumerate(variables):
        at = errors.index(path, position)
        name = variable.get("name", "")
        if not name:
            found.append(errors.required(f"{at}.name"))
        else:
            found += errors.all_invalid(f"{at}.name", name, _variable_name_errors(name))
        if "valueFrom" in variable:
            found += _value_from_errors(variable, f"{at}.valueFrom")
    return found


def _variable_name_errors(name: str) -> list[str]:
    if all(" " <= sign <= "~" and sign != "=" for sign in name):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def _value_from_errors(variable: Object, path: str) -> list[InvalidField]:
    source = variable["valueFrom"]
    given = [name for name in _ENV_SOURCES if name in source]
    found: list[InvalidField] = []
    if "fieldRef" in source:
        found += files.variable_field_errors(source["fieldRef"], f"{path}.fieldRef")
    if "resourceFieldRef" in source:
        at = f"{path}.resourceFieldRef"
        found += files.amount_reference_errors(source["resourceFieldRef"], at, in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            found += files.key_reference_errors(source[name], f"{path}.{name}")
    if not given:
        listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        found.append(errors.invalid(path, "", f"must specify one of: {listed}"))
    elif variable.get("value"):
        found.append(errors.invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(errors.invalid(path, "", "may not have more than one field specified at a time"))
    return found


def env_from_errors(sources: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, source in enumerate(sources):
        at = errors.index(path, position)
        given = [name for name in ("configMapRef", "secretRef") if name in source]
        if prefix := source.get("prefix", ""):
            found += errors.all_invalid(f"{at}.prefix", prefix, _variable_name_errors(prefix))
        for name in given:
            wanted = source[name].get("name", "")
            problems = dns_subdomain_errors(wanted) if wanted else []
            found += errors.all_invalid(f"{at}.{name}.name", wanted, problems)
            found += [] if wanted else [errors.required(f"{at}.{name}.name")]
        if not given:
            found.append(errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            found.append(errors.invalid(path, "", "may not have more than one field specified at a time"))
    return found


def mount_errors(container: Object, volumes: frozenset[str], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    devices = {device.get("name"): device.get("devicePath") for device in container.get("volumeDevices", [])}
    seen: set[str] = set()
    for position, mount in enumerate(container.get("volumeMounts", [])):
        at = errors.index(f"{path}.volumeMounts", position)
        name, where = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(errors.required(f"{at}.name"))
        if name not in volumes:
            found.append(errors.missing(f"{at}.name", name))
        if not where:
            found.append(errors.required(f"{at}.mountPath"))
        if where in seen:
            found.append(errors.invalid(f"{at}.mountPath", where, "must be unique"))
        seen.add(where)
        if name in devices:
            found.append(errors.invalid(f"{at}.name", name, "must not already exist in volumeDevices"))
        if where in devices.values():
            found.append(errors.invalid(f"{at}.mountPath", where, "must not already exist as a path in volumeDevices"))
        propagation = mount.get("mountPropagation")
        if propagation is not None and propagation not in _PROPAGATIONS:
            found.append(errors.unsupported(f"{path}.volumeMounts.mountPropagation", propagation, _PROPAGATIONS))
        if mount.get("subPathExpr") and mount.get("subPath"):
            why = "subPathExpr and subPath are mutually exclusive"
            found.append(errors.invalid(f"{at}.subPathExpr", mount["subPathExpr"], why))
    return found


def device_errors(container: Object, volumes: frozenset[str], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, device in enumerate(container.get("volumeDevices", [])):
        at = errors.index(f"{path}.volumeDevices", position)
        if not device.get("name"):
            found.append(errors.required(f"{at}.name"))
        elif device["name"] not in volumes:
            found.append(errors.missing(f"{at}.name", device["name"]))
        if not device.get("devicePath"):
            found.append(errors.required(f"{at}.devicePath"))
    return found
