"""What is wrong with a PersistentVolumeClaim and its changes: sources of data, what stays, who may grow.

``claim_specs.py`` has the rules of the spec alone, which templates share.
"""

from __future__ import annotations

import copy

from kubesched.k8s.model import quantity
from kubesched.k8s.model.label_syntax import label_key_errors
from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.amounts import is_native
from kubesched.playground.apiserver.kinds.claim_specs import claim_spec_errors
from kubesched.playground.apiserver.kinds.internal_form import difference
from kubesched.playground.apiserver.kinds.label_selectors import label_selector_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object, ObjectLookup

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_OLD_SOURCES = (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io"))
_SPEC_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_CLASS_IN_USE = "is forbidden when status.currentVolumeAttributesClassName is not nil"
_RESIZE_STATUSES = (
    *("ControllerResizeInProgress", "ControllerResizeInfeasible"),
    *("NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"),
)
_NO_RESIZE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


def settle_sources(spec: Object, old: Object | None) -> None:
    """Makes the two ways to name a source say the same; the older one knows claims and snapshots only.

    Sources in other namespaces need a feature that is off, and are dropped.
    """
    before = old or {}
    if spec.get("dataSourceRef", {}).get("namespace") and "dataSourceRef" not in before:
        del spec["dataSourceRef"]
    had_one = "dataSource" in before or "dataSourceRef" in before
    if "dataSource" in spec and "dataSourceRef" not in spec and not had_one and not _is_old_source(spec["dataSource"]):
        del spec["dataSource"]
    if "dataSource" in spec and "dataSourceRef" not in spec:
        spec["dataSourceRef"] = dict(spec["dataSource"])
    elif "dataSourceRef" in spec and "dataSource" not in spec and not spec["dataSourceRef"].get("namespace"):
        spec["dataSource"] = {name: value for name, value in spec["dataSourceRef"].items() if name != "namespace"}


def _is_old_source(source: Object) -> bool:
    return (source.get("kind"), source.get("apiGroup") or "") in _OLD_SOURCES


def claim_errors(claim: Object, old: Object | None) -> list[InvalidField]:
    if old is None:
        return claim_spec_errors(claim["spec"], "spec")
    before = old["spec"]
    had_group = any(before.get(name, {}).get("apiGroup") is not None for name in ("dataSource", "dataSourceRef"))
    had_wrong_selector = bool(label_selector_errors(before.get("selector"), ""))
    found = claim_spec_errors(claim["spec"], "spec", any_group=had_group, any_label_value=had_wrong_selector)
    return found + _change_errors(claim, old)


def _change_errors(claim: Object, old: Object) -> list[InvalidField]:
    spec, before = copy.deepcopy(claim["spec"]), copy.deepcopy(old["spec"])
    found: list[InvalidField] = []
    if not before.get("volumeName"):
        _take(before, spec, "volumeName")
    old_class, new_class = (one["metadata"].get("annotations", {}).get(_OLD_CLASS) for one in (old, claim))
    is_unnamed = "storageClassName" not in before and "storageClassName" in spec
    if (
        is_unnamed
        and old_class is not None
        and spec["storageClassName"] == old_class
        and new_class in (None, old_class)
    ):
        del spec["storageClassName"]
    else:
        if (new_class or "") != (old_class or ""):
            found.append(errors.immutable(f"metadata.annotations.{_OLD_CLASS}", new_class or ""))
        if is_unnamed and old_class in (None, spec["storageClassName"]):
            del spec["storageClassName"]
    if claim.get("status", {}).get("phase") == "Bound":
        if spec.get("resources", {}).get("requests"):
            spec["resources"]["requests"]["storage"] = _requested(old, "0")
        _take(spec, before, "volumeAttributesClassName")
    if spec != before:
        found.append(
            errors.forbidden("spec", f"{_SPEC_FIXED}\n{difference(before, spec, 'PersistentVolumeClaimSpec')}")
        )
    found += _shrink_errors(claim, old)
    if claim["spec"].get("volumeMode") != old["spec"].get("volumeMode"):
        found.append(errors.immutable("volumeMode", claim["spec"].get("volumeMode")))
    return found + _attributes_class_errors(claim, old)


def _take(spec: Object, other: Object, name: str) -> None:
    """The field as the other has it."""
    spec.pop(name, None)
    if name in other:
        spec[name] = other[name]


def _requested(claim: Object, default: str) -> str:
    text: str = claim["spec"].get("resources", {}).get("requests", {}).get("storage", default)
    return text


def _shrink_errors(claim: Object, old: Object) -> list[InvalidField]:
    """A claim may ask for less than before only down to more than what it has."""
    asked, before = quantity.parse(_requested(claim, "0")), quantity.parse(_requested(old, "0"))
    has = quantity.parse(old.get("status", {}).get("capacity", {}).get("storage", "0"))
    if asked >= before or asked > has:
        return []
    return [errors.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]


def _attributes_class_errors(claim: Object, old: Object) -> list[InvalidField]:
    wanted = claim["spec"].get("volumeAttributesClassName")
    if wanted == old["spec"].get("volumeAttributesClassName"):
        return []
    if wanted or old.get("status", {}).get("currentVolumeAttributesClassName") is None:
        return []
    what = "nil" if wanted is None else "empty string"
    return [errors.forbidden("spec.volumeAttributesClassName", f"update to {what} {_CLASS_IN_USE}")]


def status_errors(claim: Object, _: Object) -> list[InvalidField]:
    """What is wrong with a claim's new status."""
    status, at = claim.get("status", {}), "status.allocatedResourceStatuses"
    found: list[InvalidField] = []
    for name, amount in sorted(status.get("capacity", {}).items()):
        found += _amount_errors(amount, errors.key("status.capacity", name))
    for name, word in sorted(status.get("allocatedResourceStatuses", {}).items()):
        found += _resource_name_errors(name, at)
        if word not in _RESIZE_STATUSES:
            found.append(errors.unsupported(at, name, _RESIZE_STATUSES))
    at = "status.allocatedResources"
    for name, amount in sorted(status.get("allocatedResources", {}).items()):
        found += _resource_name_errors(name, at) or _amount_errors(amount, errors.key(at, name))
    return found


def _resource_name_errors(name: str, path: str) -> list[InvalidField]:
    found = errors.all_invalid(path, name, label_key_errors(name))
    if not found and is_native(name) and name != "storage":
        found.append(errors.unsupported(path, name, ("storage",)))
    return found


def _amount_errors(amount: str, path: str) -> list[InvalidField]:
    value = quantity.parse(amount).value
    return [errors.invalid(path, value, "must be a valid resource quantity")] if value < 0 else []


def refuse_resize(claim: Object, old: Object, lookup: ObjectLookup) -> None:
    """Only bound claims grow, and only where their class allows it."""
    if quantity.parse(_requested(claim, "0")) <= quantity.parse(_requested(old, "0")):
        return
    why = "Only bound persistent volume claims can be expanded"
    if old.get("status", {}).get("phase") == "Bound":
        name = _class_of(claim)
        found = lookup.get("storageclasses.storage.k8s.io", "", name) if name and name == _class_of(old) else None
        if found is not None and found.get("allowVolumeExpansion"):
            return
        why = _NO_RESIZE
    name = claim["metadata"]["name"]
    message = f'persistentvolumeclaims "{name}" is forbidden: {why}'
    raise StatusError(403, "Forbidden", message, {"name": name, "kind": "persistentvolumeclaims"})


def _class_of(claim: Object) -> str:
    old: str | None = claim["metadata"].get("annotations", {}).get(_OLD_CLASS)
    return old if old is not None else claim["spec"].get("storageClassName", "")
