"""What is wrong with a PersistentVolume or a PersistentVolumeClaim, and with changes of what stays as it was created.

A volume's spec; a claim's sources of data, and who may grow. ``volume_sources.py`` has what they share with pods.
"""

from __future__ import annotations

import copy
import posixpath
from typing import Any

from kubesched.k8s.model import quantity
from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.amounts import is_native
from kubesched.playground.apiserver.kinds.internal_form import difference, internal_form
from kubesched.playground.apiserver.kinds.metadata import label_selector_errors, node_selector_errors
from kubesched.playground.apiserver.kinds.volume_sources import (
    VOLUME_MODES,
    claim_spec_errors,
    class_name_errors,
    mode_errors,
    positive_amount_errors,
    second_source_error,
    source_errors,
)
from kubesched.playground.apiserver.served_resource import InvalidField, Object, ObjectLookup

# in the order in which the API server looks at them
_SOURCES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte"),
    *("cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk"),
    *("portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi"),
)
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_INLINE = "in the context of inline volumes"
_AFFINITY_FIXED = "field is immutable, except for updating from beta label to GA"
_GENERAL_LABELS = {
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_TAKE_MOUNT_OPTIONS = frozenset(
    (
        *("gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder"),
        *("cephfs", "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk"),
    )
)


def volume_errors(volume: Object, old: Object | None) -> list[InvalidField]:
    spec, name = volume["spec"], volume["metadata"].get("name", "")
    found = volume_spec_errors(spec, name, "spec")
    options = _mount_option_errors(volume)
    if old is None:
        return found + options
    # an update validates the whole volume twice: once for itself, once beside the old one
    return found + options + found + _change_errors(spec, old["spec"])


def volume_spec_errors(spec: Object, name: str, path: str, inline: bool = False) -> list[InvalidField]:
    """``inline``: the spec is part of a VolumeAttachment, not of a volume."""
    modes = spec.get("accessModes") or []
    found = _inline_errors(spec, path) if inline else []
    found += [] if modes else [errors.required(f"{path}.accessModes")]
    found += mode_errors(modes, f"{path}.accessModes")
    found += [] if inline else _capacity_errors(spec.get("capacity"), f"{path}.capacity")
    policy, at = spec.get("persistentVolumeReclaimPolicy", ""), f"{path}.persistentVolumeReclaimPolicy"
    if inline and policy not in ("", "Retain"):
        found.append(errors.forbidden(at, f"may only be Retain {_INLINE}"))
    elif not inline and policy and policy not in _RECLAIM_POLICIES:
        found.append(errors.unsupported(at, policy, _RECLAIM_POLICIES))
    if "nodeAffinity" in spec and inline:
        found.append(errors.forbidden(f"{path}.nodeAffinity", f"may not be specified {_INLINE}"))
    elif "nodeAffinity" in spec:
        found += _affinity_errors(spec["nodeAffinity"], f"{path}.nodeAffinity")
    found += _source_errors(spec, name, path, has_affinity="nodeAffinity" in spec and not inline)
    if "hostPath" in spec and posixpath.normpath(spec["hostPath"].get("path") or ".") == "/" and policy == "Recycle":
        found.append(errors.forbidden(at, "may not be 'recycle' for a hostPath mount of '/'"))
    return found + _class_and_mode_errors(spec, path, inline)


def _inline_errors(spec: Object, path: str) -> list[InvalidField]:
    found = [
        errors.forbidden(f"{path}.{name}", f"may not be specified {_INLINE}")
        for name in ("claimRef", "capacity")
        if spec.get(name)
    ]
    return found if "csi" in spec else [*found, errors.required(f"{path}.csi", f"has to be specified {_INLINE}")]


def _capacity_errors(capacity: dict[str, str] | None, path: str) -> list[InvalidField]:
    found = [] if capacity else [errors.required(path)]
    if not capacity or "storage" not in capacity or len(capacity) > 1:
        found.append(errors.unsupported(path, capacity, ("storage",)))
    for name, amount in sorted((capacity or {}).items()):
        at, value = errors.key(path, name), quantity.parse(amount).value
        if value < 0:
            found.append(errors.invalid(at, value, "must be a valid resource quantity"))
        found += positive_amount_errors(amount, at)
    return found


def _affinity_errors(affinity: Object, path: str) -> list[InvalidField]:
    if "required" not in affinity:
        return [errors.required(f"{path}.required", "must specify required node constraints")]
    return node_selector_errors(affinity["required"], f"{path}.required")


def sources_of(spec: Object) -> dict[str, Any]:
    return {name: spec[name] for name in _SOURCES if name in spec}


def _source_errors(spec: Object, volume_name: str, path: str, has_affinity: bool) -> list[InvalidField]:
    found: list[InvalidField] = []
    n_seen = 0
    for name, source in sources_of(spec).items():
        if n_seen and name != "flexVolume":  # which is never one too many itself
            found.append(second_source_error(name, path))
            continue
        n_seen += 1
        found += source_errors(name, source, path, True, volume_name)
        if name == "local" and not has_affinity:
            found.append(errors.required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    return found if n_seen else [errors.required(path, "must specify a volume type")]


def _class_and_mode_errors(spec: Object, path: str, inline: bool) -> list[InvalidField]:
    mode, attributes = spec.get("volumeMode", "Filesystem"), spec.get("volumeAttributesClassName")
    found: list[InvalidField] = []
    if spec.get("storageClassName") and inline:
        found.append(errors.forbidden(f"{path}.storageClassName", f"may not be specified {_INLINE}"))
    else:
        found += class_name_errors(spec.get("storageClassName"), f"{path}.storageClassName")
    if inline and mode != "Filesystem":
        why = f"may not specify volumeMode other than Filesystem {_INLINE}"
        found.append(errors.forbidden(f"{path}.volumeMode", why))
    elif mode not in VOLUME_MODES:
        found.append(errors.unsupported(f"{path}.volumeMode", mode, VOLUME_MODES))
    if attributes is None or inline:
        return found
    at = f"{path}.volumeAttributesClassName"
    found += class_name_errors(attributes, at) if attributes else [errors.required(at, "an empty string is disallowed")]
    if "csi" not in spec:
        why = "has to be specified when using volumeAttributesClassName"
        found.append(errors.required(f"{path}.csi", why))
    return found


def _mount_option_errors(volume: Object) -> list[InvalidField]:
    if _MOUNT_OPTIONS not in volume["metadata"].get("annotations", {}) or _TAKE_MOUNT_OPTIONS & volume["spec"].keys():
        return []
    why = "may not specify mount options for this volume type"
    return [errors.forbidden(f"metadata.annotations.{_MOUNT_OPTIONS}", why)]


def _change_errors(spec: Object, before: Object) -> list[InvalidField]:
    found: list[InvalidField] = []
    source, old_source = sources_of(spec), sources_of(before)
    if "csi" in source and "csi" in old_source and "controllerExpandSecretRef" not in old_source["csi"]:
        source["csi"] = {key: value for key, value in source["csi"].items() if key != "controllerExpandSecretRef"}
    if source != old_source:
        shown = difference(old_source, source, "PersistentVolumeSource")
        why = f"spec.persistentvolumesource is immutable after creation\n{shown}"
        found.append(errors.forbidden("spec.persistentvolumesource", why))
    if spec["volumeMode"] != before.get("volumeMode"):
        found.append(errors.immutable("volumeMode", spec["volumeMode"]))
    affinity = spec.get("nodeAffinity")
    if "nodeAffinity" in before and not _is_same_affinity(affinity, before["nodeAffinity"]):
        shown_affinity = None if affinity is None else internal_form(affinity, "VolumeNodeAffinity")
        found.append(errors.invalid("nodeAffinity", shown_affinity, _AFFINITY_FIXED))
    if "volumeAttributesClassName" in before and "volumeAttributesClassName" not in spec:
        why = "update from non-nil value to nil is forbidden"
        found.append(errors.forbidden("spec.volumeAttributesClassName", why))
    return found


def _is_same_affinity(new: Any, old: Any) -> bool:
    """Equal, but for labels that stand for a beta one now; a key that has no such label may also become empty."""
    if isinstance(new, dict) and isinstance(old, dict):
        if "operator" in old and new.get("key") == _GENERAL_LABELS.get(old.get("key", ""), ""):
            new, old = {**new, "key": ""}, {**old, "key": ""}
        return new.keys() == old.keys() and all(_is_same_affinity(new[name], old[name]) for name in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(_is_same_affinity, new, old))
    return bool(new == old)


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
    return found + _claim_change_errors(claim, old)


def _claim_change_errors(claim: Object, old: Object) -> list[InvalidField]:
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
