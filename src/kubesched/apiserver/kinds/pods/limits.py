"""Limit ranges of the namespace: they fill in what containers leave out, and refuse what is out of range.

For items of type Container. Items of other types and ratios are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.apiserver.kinds.kind import Object
from kubesched.model import quantity

_LIMIT_RANGER_NOTE = "kubernetes.io/limit-ranger"


def apply_defaults(pod: Object, ranges: Iterable[Object]) -> None:
    """Sets default requests and limits, and says so in an annotation."""
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    for item in _container_items(ranges):
        limits |= item.get("default", {})
        requests |= item.get("defaultRequest", {})
    notes: list[str] = []
    for sort, word in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(sort) or []:
            notes += _fill(container, limits, requests, word)
    if notes:
        text = "LimitRanger plugin set: " + "; ".join(notes)
        pod["metadata"].setdefault("annotations", {})[_LIMIT_RANGER_NOTE] = text


def _container_items(ranges: Iterable[Object]) -> list[Object]:
    return [item for one in ranges for item in one["spec"].get("limits") or [] if item.get("type") == "Container"]


def _fill(container: Object, limits: dict[str, str], requests: dict[str, str], word: str) -> list[str]:
    notes = []
    resources = container["resources"]
    for sort, defaults in (("requests", requests), ("limits", limits)):
        given = resources.get(sort, {})
        added = {name: amount for name, amount in defaults.items() if name not in given}
        if added:
            resources[sort] = {**given, **added}
            notes.append(f"{', '.join(sorted(added))} {sort[:-1]} for {word} {container.get('name', '')}")
    return notes


def first_violation(pod: Object, ranges: Iterable[Object]) -> str:
    """What is out of range, "" if nothing is."""
    wrong: list[str] = []
    for item in _container_items(ranges):
        for container in pod["spec"].get("containers") or []:
            wrong += _violations(container["resources"], item)
    return wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]" if wrong else ""


def _violations(resources: Object, item: Object) -> list[str]:
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    found = []
    for name, least in sorted(item.get("min", {}).items()):
        rule = f"minimum {name} usage per Container is {least}"
        if name not in requests:
            found.append(f"{rule}.  No request is specified")
        elif quantity.parse(requests[name]) < quantity.parse(least):
            found.append(f"{rule}, but request is {requests[name]}")
    for name, most in sorted(item.get("max", {}).items()):
        rule = f"maximum {name} usage per Container is {most}"
        if name not in limits:
            found.append(f"{rule}.  No limit is specified")
        elif quantity.parse(limits[name]) > quantity.parse(most):
            found.append(f"{rule}, but limit is {limits[name]}")
    return found
