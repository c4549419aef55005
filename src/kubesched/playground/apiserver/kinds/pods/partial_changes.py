"""Changes of a pod through the subresources resize and ephemeralcontainers: what they take over, and what they refuse.

A resize changes cpu and memory of containers and nothing else; the other one only adds ephemeral containers.
``strategy.py`` calls the first half before validation, ``rules.py`` the second half as validation.
"""

from __future__ import annotations

from kubesched.k8s.model.requests import qos_class
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.pods.internal_form import spec_difference
from kubesched.playground.apiserver.kinds.pods.spec import pod_spec_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_SORTS = ("containers", "initContainers")
_RESIZABLE = ("cpu", "memory")
_ONLY_THESE = "only cpu and memory resources are mutable"
_KEPT_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")


def keep_all_but_ephemeral(pod: Object, old: Object) -> None:
    added = pod["spec"].get("ephemeralContainers")
    pod["spec"] = dict(old["spec"])
    if added is not None:
        pod["spec"]["ephemeralContainers"] = added
    _keep_metadata(pod, old)


def keep_all_but_resources(pod: Object, old: Object) -> None:
    """Containers that were added, renamed or moved stay as they are: validation refuses them."""
    spec, before = pod["spec"], old["spec"]
    if any(len(spec.get(sort) or []) != len(before.get(sort) or []) for sort in _SORTS):
        return
    kept = dict(before)
    for sort in _SORTS:
        if before.get(sort):
            kept[sort] = _resized(spec[sort], before[sort])
    kept.pop("resources", None)
    if spec.get("resources"):
        kept["resources"] = spec["resources"]
    pod["spec"] = kept
    _keep_metadata(pod, old)


def _resized(new: list[Object], old: list[Object]) -> list[Object]:
    if [one["name"] for one in new] != [one["name"] for one in old]:
        return new
    merged = []
    for container, before in zip(new, old, strict=True):
        changed = {name: container[name] for name in ("resources", "resizePolicy") if name in container}
        merged.append({name: part for name, part in before.items() if name != "resizePolicy"} | changed)
    return merged


def _keep_metadata(pod: Object, old: Object) -> None:
    for name in _KEPT_METADATA:
        pod["metadata"].pop(name, None)
        if name in old["metadata"]:
            pod["metadata"][name] = old["metadata"][name]


def ephemeral_errors(pod: Object, old: Object) -> list[InvalidField]:
    path = "spec.ephemeralContainers"
    found = pod_spec_errors(pod["spec"], pod["metadata"].get("name", ""), "spec", is_pod=True)
    present = {one["name"]: one for one in (pod["spec"].get("ephemeralContainers") or [])}
    for before in old["spec"].get("ephemeralContainers") or []:
        name = before["name"]
        if name not in present:
            found.append(errors.forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n'))
        elif present[name] != before:
            shown = spec_difference({"ephemeralContainers": [before]}, {"ephemeralContainers": [present[name]]})
            found.append(errors.forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n{shown}'))
    return found


def resize_errors(pod: Object, old: Object) -> list[InvalidField]:
    spec, before = pod["spec"], old["spec"]
    found = pod_spec_errors(spec, pod["metadata"].get("name", ""), "spec", is_pod=True)
    status = old.get("status", {})
    if qos_class(pod) != status.get("qosClass", ""):
        why = "Pod QOS Class may not change as a result of resizing"
        found.append(errors.invalid("spec", status.get("qosClass", ""), why))
    running = [one for one in (status.get("containerStatuses") or []) if "running" in one.get("state", {})]
    if running and "resources" not in running[0]:
        found.append(errors.forbidden("spec", "Pod running on node without support for resize"))
    moved = [one for sort in _SORTS for one in _order_errors(spec.get(sort) or [], before.get(sort) or [], sort)]
    if moved:
        return found + moved
    for sort in reversed(_SORTS):
        for n, (new, was) in enumerate(zip(spec.get(sort) or [], before.get(sort) or [], strict=True)):
            found += _removal_errors(new, was, f"{errors.index(f'spec.{sort}', n)}.resources")
    if not found and _without_amounts(spec) != _without_amounts(before):
        found.append(errors.forbidden("spec", _ONLY_THESE))
    return found


def _order_errors(new: list[Object], old: list[Object], sort: str) -> list[InvalidField]:
    if len(new) != len(old):
        return [errors.forbidden(f"spec.{sort}", f"{sort} may not be added or removed on resize")]
    return [
        errors.forbidden(f"{errors.index(f'spec.{sort}', n)}.name", f"{sort} may not be renamed or reordered on resize")
        for n, (one, before) in enumerate(zip(new, old, strict=True))
        if one["name"] != before["name"]
    ]


def _removal_errors(new: Object, old: Object, path: str) -> list[InvalidField]:
    after, before = new.get("resources", {}), old.get("resources", {})
    return [
        errors.forbidden(f"{path}.{sort}", f"resource {sort} cannot be removed")
        for sort in ("requests", "limits")
        if set(before.get(sort, {})) - set(after.get(sort, {}))
    ]


def _without_amounts(spec: Object) -> Object:
    """The spec without what a resize may change."""
    rest = {name: part for name, part in spec.items() if name != "resources"}
    for sort in _SORTS:
        rest[sort] = [{**one, "resources": _other_amounts(one.get("resources", {}))} for one in spec.get(sort) or []]
    return rest


def _other_amounts(resources: Object) -> Object:
    kept = dict(resources)
    for sort in ("requests", "limits"):
        kept[sort] = {name: amount for name, amount in resources.get(sort, {}).items() if name not in _RESIZABLE}
    return kept
