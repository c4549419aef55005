"""What all containers of a pod ask for together, and the pod's quality of service class that follows.

On pods as plain JSON, requests and limits alike; `requests` does it for typed pods as schedulers count them.
"""

from __future__ import annotations

from typing import Any

from kubesched.k8s.model import quantity
from kubesched.k8s.model.quantity import Quantity

Object = dict[str, Any]
Amounts = dict[str, Quantity]

_QOS_RESOURCES = ("cpu", "memory")


def container_totals(spec: Object, sort: str) -> Amounts:
    """Sum over containers and sidecars, or the most that any init container needs beside the sidecars before it."""
    total: Amounts = {}
    for container in spec.get("containers") or []:
        _add(total, container_amounts(container, sort))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers", []):
        needed = container_amounts(container, sort)
        if container.get("restartPolicy") == "Always":
            _add(total, needed)
            _add(sidecars, needed)
            needed = dict(sidecars)
        else:
            _add(needed, sidecars)
        for name, amount in needed.items():
            peak[name] = max(peak.get(name, amount), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, amount), amount)
    return total


def container_amounts(container: Object, sort: str) -> Amounts:
    given = (container.get("resources") or {}).get(sort) or {}
    return {name: quantity.parse(amount) for name, amount in given.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def qos_class(pod: Object) -> str:
    spec = pod["spec"]
    if "resources" in spec:
        holders = [{"resources": spec["resources"]}]
        limits_everything = not spec["resources"].get("limits") or _limits_both(spec["resources"])
    else:
        holders = [*(spec.get("containers") or []), *spec.get("initContainers", [])]
        limits_everything = all(_limits_both(holder.get("resources", {})) for holder in holders)
    requests: Amounts = {}
    limits: Amounts = {}
    for holder in holders:
        _add(requests, _positive(holder, "requests"))
        _add(limits, _positive(holder, "limits"))
    if not requests and not limits:
        return "BestEffort"
    is_equal = all(limits.get(name) == amount for name, amount in requests.items())
    is_guaranteed = limits_everything and is_equal and len(requests) == len(limits)
    return "Guaranteed" if is_guaranteed else "Burstable"


def _positive(holder: Object, sort: str) -> Amounts:
    return {
        n: amount for n, amount in container_amounts(holder, sort).items() if n in _QOS_RESOURCES and amount.nanos > 0
    }


def _limits_both(resources: Object) -> bool:
    return _positive({"resources": resources}, "limits").keys() >= set(_QOS_RESOURCES)
