"""What is wrong with the containers of a pod spec, in the API server's words and order.

``container_list_errors`` covers regular containers, ``init_container_errors`` init containers and sidecars,
``ephemeral_errors`` the rest. Ports, environment and mounts are in ``container_parts.py``, probes and hooks in
``probes.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.playground.apiserver.kinds import amounts
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.name_syntax import dns_label_errors
from kubesched.playground.apiserver.kinds.pods import container_parts as parts
from kubesched.playground.apiserver.kinds.pods.probes import hook_errors, probe_errors
from kubesched.playground.apiserver.kinds.pods.security import container_security_errors, resize_policy_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

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
    return found + parts.host_port_conflicts(containers, path)


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
        found += parts.host_port_conflicts([container], path)
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
    found += parts.port_errors(container.get("ports", []), f"{path}.ports")
    found += parts.env_errors(container.get("env", []), f"{path}.env")
    found += parts.env_from_errors(container.get("envFrom", []), f"{path}.envFrom")
    found += parts.mount_errors(container, pod.volumes, path)
    found += parts.device_errors(container, pod.volumes, path)
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
