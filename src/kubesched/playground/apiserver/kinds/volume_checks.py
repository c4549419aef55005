"""What is wrong with a PersistentVolume: its spec, and changes of what stays as it was created."""

from __future__ import annotations

import posixpath
from typing import Any

from kubesched.k8s.model import quantity
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.claim_specs import (
    VOLUME_MODES,
    class_name_errors,
    mode_errors,
    positive_amount_errors,
)
from kubesched.playground.apiserver.kinds.internal_form import difference, internal_form
from kubesched.playground.apiserver.kinds.label_selectors import node_selector_errors
from kubesched.playground.apiserver.kinds.volume_sources import second_source_error, source_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

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
