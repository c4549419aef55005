"""What the API server accepts in a pod but warns about.

Deprecated labels and annotations, fractions of bytes, hidden variables, ports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesched.k8s.model import quantity
from kubesched.playground.apiserver.kinds.label_selectors import DEPRECATED_LABELS
from kubesched.playground.apiserver.kinds.name_syntax import dns_label_errors
from kubesched.playground.apiserver.kinds.volume_warnings import for_pod_volumes
from kubesched.playground.apiserver.served_resource import Object

_CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_BYTES = ("memory", "ephemeral-storage")


def for_new_pod(pod: Object) -> list[str]:
    name = pod["metadata"].get("name", "")
    found = []
    if name and (errors := dns_label_errors(name)):
        why = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        found.append(f"metadata.name: {why}: [{' '.join(errors)}]")
    return found + for_pod_spec(pod["spec"], pod["metadata"], "")


def for_pod_spec(spec: Object, meta: Object, prefix: str) -> list[str]:
    """``prefix`` is "" for a pod, "spec.template." for a workload."""
    path = f"{prefix}spec"
    found = [
        f"{path}.nodeSelector[{label}]: {DEPRECATED_LABELS[label]}"
        for label in sorted(spec.get("nodeSelector", {}))
        if label in DEPRECATED_LABELS
    ]
    for position, constraint in enumerate(spec.get("topologySpreadConstraints", [])):
        at = f"{path}.topologySpreadConstraints[{position}]"
        label = constraint.get("topologyKey", "")
        if label in DEPRECATED_LABELS:
            found.append(f"{at}.topologyKey: {label} is {DEPRECATED_LABELS[label]}")
        if "labelSelector" not in constraint:
            found.append(f"{at}.labelSelector: a null labelSelector results in matching no pod")
    annotations = meta.get("annotations", {})
    if _CRITICAL in annotations:
        why = 'non-functional in v1.16+; use the "priorityClassName" field instead'
        found.append(f"{prefix}metadata.annotations[{_CRITICAL}]: {why}")
    found += for_pod_volumes(spec.get("volumes") or [], f"{path}.volumes")
    if _SECCOMP in annotations and "seccompProfile" not in spec.get("securityContext", {}):
        why = 'non-functional in v1.27+; use the "seccompProfile" field instead'
        found.append(f"{prefix}metadata.annotations[{_SECCOMP}]: {why}")
    for at, container in _containers(spec, path):
        found += _for_container(container, at)
    return found + _for_ports(spec, path)


def _containers(spec: Object, path: str) -> Iterator[tuple[str, Object]]:
    for sort in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(sort) or []):
            yield f"{path}.{sort}[{position}]", container


def _for_container(container: Object, path: str) -> list[str]:
    found = []
    for resource in _BYTES:
        for sort in ("limits", "requests"):
            amount = container.get("resources", {}).get(sort, {}).get(resource)
            if amount is not None and not quantity.parse(amount).is_whole:
                why = f'fractional byte value "{amount}" is invalid, must be an integer'
                found.append(f"{path}.resources.{sort}[{resource}]: {why}")
    seen: set[str] = set()
    for position, variable in enumerate(container.get("env", [])):
        name = variable.get("name", "")
        reference = f"$({name})"
        value = variable.get("value", "")
        if name in seen and ("valueFrom" in variable or value == reference or reference not in value):
            why = f'hides previous definition of "{name}", which may be dropped when using apply'
            found.append(f"{path}.env[{position}]: {why}")
        seen.add(name)
    return found


def _for_ports(spec: Object, path: str) -> list[str]:
    found = []
    known: dict[tuple[Any, Any], list[tuple[str, Object]]] = {}
    names: dict[str, str] = {}
    for at, container in _containers(spec, path):
        for position, port in enumerate(container.get("ports", [])):
            here = f"{at}.ports[{position}]"
            others = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
            for place, other in others:
                if word := _clash(port, other):
                    found.append(f"{here}: {word} port definition with {place}")
            others.append((here, port))
    for at, container in _containers(spec, path):
        for position, port in enumerate(container.get("ports", [])):
            name, here = port.get("name", ""), f"{at}.ports[{position}]"
            if name in names:
                rest = f"with {names[name]}, services and probes that select ports by name will use {names[name]}"
                found.append(f'{here}: duplicate port name "{name}" {rest}')
            elif name:
                names[name] = here
    return found


def _clash(port: Object, other: Object) -> str:
    one = (port.get("hostIP", ""), port.get("hostPort", 0))
    two = (other.get("hostIP", ""), other.get("hostPort", 0))
    if one == two:
        return "duplicate"
    if not one[1] or not two[1]:
        return "overlapping"
    return "dangerously ambiguous" if one[1] == two[1] and (one[0] == "") != (two[0] == "") else ""
