"""What is wrong with the containers of a pod spec, and with security contexts, in the API server's words and order.

``container_list_errors`` covers regular containers, ``init_container_errors`` init containers and sidecars,
``ephemeral_errors`` the rest. What they consist of comes first: ports, environment, volume mounts, devices, probes and
lifecycle hooks. Security contexts, of pods and of containers, and resize policies come last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.playground.apiserver.kinds import amounts
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import (
    dns_label_errors,
    dns_subdomain_errors,
    port_name_errors,
    port_number_errors,
)
from kubesched.playground.apiserver.kinds.pods import volumes
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
        found += volumes.variable_field_errors(source["fieldRef"], f"{path}.fieldRef")
    if "resourceFieldRef" in source:
        at = f"{path}.resourceFieldRef"
        found += volumes.amount_reference_errors(source["resourceFieldRef"], at, in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            found += volumes.key_reference_errors(source[name], f"{path}.{name}")
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


_HEADER = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SECONDS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def probe_errors(probe: Object, path: str, must_succeed_once: bool) -> list[InvalidField]:
    found = hook_errors(probe, path)
    found += [
        errors.invalid(f"{path}.{name}", probe[name], "must be greater than or equal to 0")
        for name in _SECONDS
        if probe.get(name, 0) < 0
    ]
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        found.append(errors.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if must_succeed_once and probe["successThreshold"] != 1:
        found.append(errors.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return found


def hook_errors(handler: Object, path: str) -> list[InvalidField]:
    given = [name for name in _HANDLERS if name in handler]
    if not given:
        return [errors.required(path, "must specify a handler type")]
    found = _action_errors(given[0], handler[given[0]], f"{path}.{given[0]}")
    return found + [
        errors.forbidden(f"{path}.{name}", "may not specify more than 1 handler type") for name in given[1:]
    ]


def _action_errors(sort: str, action: Object, path: str) -> list[InvalidField]:
    if sort == "exec":
        return [] if action.get("command") else [errors.required(f"{path}.command")]
    if sort == "grpc":
        port = action.get("port", 0)
        return errors.all_invalid(f"{path}.port", port, port_number_errors(port))
    if sort == "sleep":
        return []
    found = port_or_name_errors(action.get("port", 0), f"{path}.port")
    if sort == "httpGet":
        found += [
            errors.invalid(f"{path}.httpHeaders", header.get("name", ""), _HEADER)
            for header in (action.get("httpHeaders") or [])
            if not re.fullmatch("[-A-Za-z0-9]+", header.get("name", ""))
        ]
    if sort == "httpGet" and action.get("scheme") not in ("HTTP", "HTTPS"):
        found.append(errors.unsupported(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
    return found


def port_or_name_errors(port: Any, path: str) -> list[InvalidField]:
    problems = port_number_errors(port) if isinstance(port, int) else port_name_errors(port)
    return errors.all_invalid(path, port, problems)


_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_OPERATORS = ("In", "NotIn")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"


@dataclass(frozen=True, slots=True)
class PodParts:
    """What containers may refer to: the volumes and claims of their pod."""

    volumes: frozenset[str]
    claims: frozenset[str]
    restarts: str = ""  # its restart policy


def container_list_errors(containers: Sequence[Object], path: str, pod: PodParts) -> list[InvalidField]:
    if not containers:
        return [errors.required(path)]
    found: list[InvalidField] = []
    names: set[str] = set()
    for position, container in enumerate(containers):
        at = errors.index(path, position)
        found += _shared_errors(container, at, pod)
        name = container.get("name", "")
        if name in names:
            found.append(errors.duplicate(f"{at}.name", name))
        names.add(name)
        found += _handler_errors(container, at)
        found += _restart_policy_errors(container, at)
    return found + host_port_conflicts(containers, path)


def init_container_errors(
    containers: Sequence[Object], regular: Sequence[Object], path: str, pod: PodParts
) -> list[InvalidField]:
    found: list[InvalidField] = []
    names = {container.get("name", "") for container in regular}
    for position, container in enumerate(containers):
        at = errors.index(path, position)
        found += _shared_errors(container, at, pod)
        found += _restart_policy_errors(container, at)
        found += _taken_name(container, at, names)
        found += host_port_conflicts([container], path)
        if container.get("restartPolicy") == "Always":
            found += _handler_errors(container, at)
        else:
            given = [part for part in ("lifecycle", *_PROBES) if part in container]
            found += [errors.forbidden(f"{at}.{part}", _NOT_FOR_INIT) for part in given]
    return found


def ephemeral_errors(
    containers: Sequence[Object], others: Sequence[Object], path: str, pod: PodParts
) -> list[InvalidField]:
    found: list[InvalidField] = []
    names = {container.get("name", "") for container in others}
    for position, container in enumerate(containers):
        at = errors.index(path, position)
        found += _shared_errors(container, at, pod)
        found += _taken_name(container, at, names)
        target = container.get("targetContainerName")
        if target and target not in {other.get("name") for other in others}:
            found.append(errors.missing(f"{at}.targetContainerName", target))
        given = [part for part in ("lifecycle", *_PROBES, "ports") if part in container]
        found += [errors.forbidden(f"{at}.{part}", "cannot be set for an Ephemeral Container") for part in given]
    return found


def image_space_errors(containers: Sequence[Object], path: str) -> list[InvalidField]:
    """Only for pods, not for templates."""
    return [
        errors.invalid(f"{errors.index(path, n)}.image", one["image"], "must not have leading or trailing whitespace")
        for n, one in enumerate(containers)
        if one.get("image", "") != one.get("image", "").strip()
    ]


def _taken_name(container: Object, path: str, names: set[str]) -> list[InvalidField]:
    """Adds the name to those that are taken; that it is missing is said elsewhere."""
    name = container.get("name", "")
    if name in names:
        return [errors.duplicate(f"{path}.name", name)]
    if name:
        names.add(name)
    return []


def _shared_errors(container: Object, path: str, pod: PodParts) -> list[InvalidField]:
    name = container.get("name", "")
    found: list[InvalidField] = []
    if not name:
        found.append(errors.required(f"{path}.name"))
    else:
        found += errors.all_invalid(f"{path}.name", name, dns_label_errors(name))
    if not container.get("image"):
        found.append(errors.required(f"{path}.image"))
    if container["terminationMessagePolicy"] not in _MESSAGE_POLICIES:
        at = f"{path}.terminationMessagePolicy"
        found.append(errors.unsupported(at, container["terminationMessagePolicy"], _MESSAGE_POLICIES))
    found += port_errors(container.get("ports", []), f"{path}.ports")
    found += env_errors(container.get("env", []), f"{path}.env")
    found += env_from_errors(container.get("envFrom", []), f"{path}.envFrom")
    found += mount_errors(container, pod.volumes, path)
    found += device_errors(container, pod.volumes, path)
    if container["imagePullPolicy"] not in _PULL_POLICIES:
        at = f"{path}.imagePullPolicy"
        found.append(errors.unsupported(at, container["imagePullPolicy"], _PULL_POLICIES))
    rule = amounts.container_resource_name_errors
    found += amounts.requirement_errors(container.get("resources", {}), rule, f"{path}.resources", pod.claims)
    found += resize_policy_errors(container.get("resizePolicy", []), f"{path}.resizePolicy", pod.restarts)
    return found + container_security_errors(container.get("securityContext"), f"{path}.securityContext")


def _handler_errors(container: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for hook in ("postStart", "preStop"):
        handler = container.get("lifecycle", {}).get(hook)
        if handler is not None:
            found += hook_errors(handler, f"{path}.lifecycle.{hook}")
    for name in _PROBES:
        if name in container:
            found += probe_errors(container[name], f"{path}.{name}", must_succeed_once=name != "readinessProbe")
    return found


def _restart_policy_errors(container: Object, path: str) -> list[InvalidField]:
    policy = container.get("restartPolicy")
    rules = container.get("restartPolicyRules", [])
    at = f"{path}.restartPolicy"
    found: list[InvalidField] = []
    if policy is None:
        if rules:
            found.append(errors.required(at, "must specify restartPolicy when restart rules are used"))
    elif policy not in _RESTART_POLICIES:
        found.append(errors.unsupported(at, policy, _RESTART_POLICIES))
    for position, rule in enumerate(rules):
        where = errors.index(f"{path}.restartPolicyRules", position)
        if "exitCodes" not in rule:
            found.append(errors.required(f"{where}.exitCodes", "must be specified"))
        elif rule["exitCodes"].get("operator") not in _RESTART_OPERATORS:
            given = rule["exitCodes"].get("operator", "")
            found.append(errors.unsupported(f"{where}.exitCodes.operator", given, _RESTART_OPERATORS))
    return found


_MOST_ID = 2**31 - 1
_SECCOMP_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_LONGEST_SYSCTL = 253
_RESIZABLE = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")


def pod_security_errors(spec: Object, path: str) -> list[InvalidField]:
    context = spec.get("securityContext", {})
    found: list[InvalidField] = []
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        found += _id_errors(context.get(name), f"{path}.{name}")
    for position, group in enumerate(context.get("supplementalGroups") or []):
        found += _id_errors(group, errors.index(f"{path}.supplementalGroups", position))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(errors.invalid(f"{path}.shareProcessNamespace", True, why))
    found += _sysctl_errors((context.get("sysctls") or []), f"{path}.sysctls")
    policy = context.get("fsGroupChangePolicy")
    if policy is not None and policy not in ("Always", "OnRootMismatch"):
        found.append(errors.unsupported(f"{path}.fsGroupChangePolicy", policy, ("Always", "OnRootMismatch")))
    return found + _seccomp_errors(context.get("seccompProfile"), f"{path}.seccompProfile")


def container_security_errors(context: Object | None, path: str) -> list[InvalidField]:
    if not context:
        return []
    found = _id_errors(context.get("runAsUser"), f"{path}.runAsUser")
    found += _id_errors(context.get("runAsGroup"), f"{path}.runAsGroup")
    return found + _seccomp_errors(context.get("seccompProfile"), f"{path}.seccompProfile")


def _id_errors(number: int | None, path: str) -> list[InvalidField]:
    if number is None or 0 <= number <= _MOST_ID:
        return []
    return [errors.invalid(path, number, f"must be between 0 and {_MOST_ID}, inclusive")]


def _sysctl_errors(sysctls: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    names: set[str] = set()
    for position, sysctl in enumerate(sysctls):
        at, name = f"{errors.index(path, position)}.name", sysctl.get("name", "")
        if not name:
            found.append(errors.required(at))
        elif len(name) > _LONGEST_SYSCTL or not re.match(_SYSCTL, name):
            why = f"must have at most {_LONGEST_SYSCTL} characters and match regex {_SYSCTL}"
            found.append(errors.invalid(at, name, why))
        elif name in names:
            found.append(errors.duplicate(at, name))
        names.add(name)
    return found


def _seccomp_errors(profile: Object | None, path: str) -> list[InvalidField]:
    if profile is None:
        return []
    sort, local = profile.get("type", ""), profile.get("localhostProfile")
    found: list[InvalidField] = []
    if not sort:
        found.append(errors.required(f"{path}.type", "type is required when seccompProfile is set"))
    elif sort not in _SECCOMP_TYPES:
        found.append(errors.unsupported(f"{path}.type", sort, _SECCOMP_TYPES))
    if sort == "Localhost" and local is None:
        found.append(errors.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
    elif sort != "Localhost" and local is not None:
        shown = {"Type": sort, "LocalhostProfile": local}
        why = "can only be set when seccomp type is Localhost"
        found.append(errors.invalid(f"{path}.localhostProfile", shown, why))
    return found


def resize_policy_errors(policies: Sequence[Object], path: str, restarts: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    names: set[str] = set()
    for position, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in names:
            found.append(errors.duplicate(errors.index(path, position), name))
        names.add(name)
        for value, allowed in ((name, _RESIZABLE), (restart, _RESIZE_POLICIES)):
            if not value:
                found.append(errors.required(path))
            elif value not in allowed:
                found.append(errors.unsupported(path, value, allowed))
        if restarts == "Never" and restart != "NotRequired":
            why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.append(errors.invalid(path, restart, why))
    return found
