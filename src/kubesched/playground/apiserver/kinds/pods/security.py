"""What is wrong with security contexts, of pods and of containers, and with resize policies."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

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
