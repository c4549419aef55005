"""Volumes, claims, storage classes and what CSI drivers say of themselves.

Defaults, protection finalizers, validation, tables.
"""

from __future__ import annotations

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds.amounts import amount_errors, round_up_to_milli
from kubesched.apiserver.kinds.kind import InvalidField, Object, TableColumn, WriteContext
from kubesched.apiserver.kinds.label_selectors import label_selector_errors, node_selector_errors
from kubesched.apiserver.kinds.serving import KindRules
from kubesched.apiserver.kinds.table_columns import AGE, NAME, described, dig, name_of
from kubesched.model import quantity

_CORE = "io.k8s.api.core.v1."
_STORAGE = "io.k8s.api.storage.v1."
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SHORT_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_VOLUME_MODES = ("Block", "Filesystem")
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_CLASS_FIXED = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_CLAIM_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _protect(obj: Object, finalizer: str) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def _set_claim_defaults(claim: Object) -> None:
    claim["spec"].setdefault("volumeMode", "Filesystem")
    claim["status"].setdefault("phase", "Pending")
    for sort in ("requests", "limits"):
        round_up_to_milli(claim["spec"].get("resources", {}).get(sort, {}))


def _create_claim(claim: Object, ctx: WriteContext) -> None:
    claim["status"] = {"phase": "Pending"}
    _protect(claim, "kubernetes.io/pvc-protection")
    spec = claim["spec"]
    if "storageClassName" in spec or _OLD_CLASS in claim["metadata"].get("annotations", {}):
        return
    defaults = [
        one
        for one in ctx.lookup.list("storageclasses.storage.k8s.io")
        if one["metadata"].get("annotations", {}).get(_DEFAULT_CLASS) == "true"
    ]
    if defaults:
        newest = max(defaults, key=lambda one: (one["metadata"].get("creationTimestamp", ""), name_of(one)))
        spec["storageClassName"] = name_of(newest)


def _mode_errors(modes: list[str], path: str) -> list[InvalidField]:
    if not modes:
        return [errors.required(path, "at least 1 access mode is required")]
    found = [errors.unsupported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        found.append(errors.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def _validate_claim(claim: Object, old: Object | None) -> list[InvalidField]:
    spec = claim["spec"]
    found = _mode_errors(spec.get("accessModes", []), "spec.accessModes")
    found += label_selector_errors(spec.get("selector"), "spec.selector")
    amount = spec.get("resources", {}).get("requests", {}).get("storage")
    at = errors.key("spec.resources.requests", "storage")
    if amount is None:
        found.append(errors.required(at))
    else:
        found += amount_errors("storage", amount, at)
        if quantity.parse(amount).nanos == 0:
            found.append(errors.invalid(at, amount, "must be greater than zero"))
    if spec["volumeMode"] not in _VOLUME_MODES:
        found.append(errors.unsupported("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES))
    return found + (_claim_change_errors(claim, old) if old is not None else [])


def _claim_change_errors(claim: Object, old: Object) -> list[InvalidField]:
    new, before = dict(claim["spec"]), dict(old["spec"])
    for name in ("resources", "volumeAttributesClassName"):
        new.pop(name, None)
        before.pop(name, None)
    if not before.get("volumeName"):
        new.pop("volumeName", None)
    if "storageClassName" not in before:
        new.pop("storageClassName", None)
    found = [errors.forbidden("spec", _CLAIM_FIXED)] if new != before else []
    sizes = [one["spec"].get("resources", {}).get("requests", {}).get("storage", "0") for one in (claim, old)]
    if quantity.parse(sizes[0]) < quantity.parse(sizes[1]):
        why = "field can not be less than status.capacity"
        found.append(errors.forbidden("spec.resources.requests.storage", why))
    return found


def _set_volume_defaults(volume: Object) -> None:
    volume["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    volume["spec"].setdefault("volumeMode", "Filesystem")
    volume["status"].setdefault("phase", "Pending")
    round_up_to_milli(volume["spec"].get("capacity", {}))
    if "hostPath" in volume["spec"]:
        volume["spec"]["hostPath"].setdefault("type", "")


def _create_volume(volume: Object, ctx: WriteContext) -> None:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": ctx.now}
    _protect(volume, "kubernetes.io/pv-protection")


def _update_volume(volume: Object, old: Object, ctx: WriteContext) -> None:
    if ctx.subresource == "status" and volume["status"].get("phase") != old["status"].get("phase"):
        volume["status"].setdefault("lastPhaseTransitionTime", ctx.now)
        if volume["status"]["lastPhaseTransitionTime"] == old["status"].get("lastPhaseTransitionTime"):
            volume["status"]["lastPhaseTransitionTime"] = ctx.now


def _volume_sources(spec: Object) -> list[str]:
    plain = {
        *("capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName"),
        *("mountOptions", "volumeMode", "nodeAffinity", "volumeAttributesClassName"),
    }
    return [name for name in spec if name not in plain]


def _validate_volume(volume: Object, old: Object | None) -> list[InvalidField]:
    spec = volume["spec"]
    found = _mode_errors(spec.get("accessModes", []), "spec.accessModes")
    if not spec.get("capacity"):
        found.append(errors.required("spec.capacity"))
    elif "storage" not in spec["capacity"] or len(spec["capacity"]) > 1:
        shown = spec["capacity"]
        found.append(errors.unsupported("spec.capacity", shown, ("storage",)))
    for name, amount in sorted(spec.get("capacity", {}).items()):
        found += amount_errors(name, amount, errors.key("spec.capacity", name))
    if spec["persistentVolumeReclaimPolicy"] not in _RECLAIM_POLICIES:
        at = "spec.persistentVolumeReclaimPolicy"
        found.append(errors.unsupported(at, spec["persistentVolumeReclaimPolicy"], _RECLAIM_POLICIES))
    required = spec.get("nodeAffinity", {}).get("required")
    if required is not None:
        found += node_selector_errors(required, "spec.nodeAffinity.required")
    sources = _volume_sources(spec)
    if not sources:
        found.append(errors.required("spec", "must specify a volume type"))
    found += [errors.forbidden(f"spec.{n}", "may not specify more than 1 volume type") for n in sources[1:]]
    if old is not None and [(n, spec.get(n)) for n in sources] != [
        (n, old["spec"].get(n)) for n in _volume_sources(old["spec"])
    ]:
        found.append(
            errors.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
        )
    return found


def _set_class_defaults(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _validate_class(obj: Object, old: Object | None) -> list[InvalidField]:
    found: list[InvalidField] = []
    if not obj.get("provisioner"):
        found.append(errors.required("provisioner"))
    if obj["reclaimPolicy"] not in ("Delete", "Retain"):
        found.append(errors.unsupported("reclaimPolicy", obj["reclaimPolicy"], ("Delete", "Retain")))
    if obj["volumeBindingMode"] not in _BINDING_MODES:
        found.append(errors.unsupported("volumeBindingMode", obj["volumeBindingMode"], _BINDING_MODES))
    if old is not None:
        changed = [name for name in _CLASS_FIXED if obj.get(name) != old.get(name)]
        forbidden = [name for name in changed if name in ("parameters", "provisioner")]
        found += [errors.forbidden(name, f"updates to {name} are forbidden.") for name in forbidden]
        found += [errors.immutable(name, obj.get(name)) for name in changed if name not in forbidden]
    return found


def _set_driver_defaults(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("volumeLifecycleModes", ["Persistent"])
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("requiresRepublish", False)
    spec.setdefault("seLinuxMount", False)


def _validate_csi_node(obj: Object, _: Object | None) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, driver in enumerate(obj["spec"].get("drivers") or []):
        at, name = errors.index("spec.drivers", position), driver.get("name", "")
        if not name:
            found.append(errors.required(f"{at}.name"))
        if name in seen:
            found.append(errors.duplicate(f"{at}.name", name))
        seen.add(name)
        if not driver.get("nodeID"):
            found.append(errors.required(f"{at}.nodeID"))
        count = driver.get("allocatable", {}).get("count", 0)
        if count < 0:
            found.append(errors.invalid(f"{at}.allocatable.count", count, "must be greater than or equal to 0"))
    return found


def _print_modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in modes)


def _phase(obj: Object) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(dig("status.phase")(obj))


def _claim_reference(volume: Object) -> str:
    claim = volume["spec"].get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _of_bound(claim: Object, path: str) -> object:
    return dig(path, "")(claim) if claim["spec"].get("volumeName") else ""


def _class_of(obj: Object) -> str:
    old: str = obj["metadata"].get("annotations", {}).get(_OLD_CLASS, "")
    return old or str(dig("spec.storageClassName")(obj))


def _class_name(obj: Object) -> str:
    is_default = obj["metadata"].get("annotations", {}).get(_DEFAULT_CLASS) == "true"
    return name_of(obj) + (" (default)" if is_default else "")


def _field(label: str, path: str, schema: str, default: object = "", kind: str = "string") -> TableColumn:
    return described(label, dig(path, default), schema, path.rpartition(".")[2], type=kind)


_PV_SPEC, _PV_STATUS = _CORE + "PersistentVolumeSpec", _CORE + "PersistentVolumeStatus"
_PVC_SPEC, _PVC_STATUS = _CORE + "PersistentVolumeClaimSpec", _CORE + "PersistentVolumeClaimStatus"
_DRIVER = _STORAGE + "CSIDriverSpec"

CLAIM = KindRules(
    set_defaults=_set_claim_defaults,
    prepare_create=_create_claim,
    validate=_validate_claim,
    columns=(
        NAME,
        described("Status", _phase, _PVC_STATUS, "phase"),
        _field("Volume", "spec.volumeName", _PVC_SPEC),
        described("Capacity", lambda c: _of_bound(c, "status.capacity.storage"), _PVC_STATUS, "capacity"),
        described(
            "Access Modes",
            lambda c: _print_modes(dig("status.accessModes", [])(c)) if c["spec"].get("volumeName") else "",
            _PVC_STATUS,
            "accessModes",
        ),
        TableColumn("StorageClass", _class_of, description="StorageClass of the pvc"),
        TableColumn(
            "VolumeAttributesClass",
            dig("spec.volumeAttributesClassName", "<unset>"),
            description="VolumeAttributesClass of the pvc",
        ),
        AGE,
        described("VolumeMode", dig("spec.volumeMode", "<unset>"), _PVC_SPEC, "volumeMode", priority=1),
    ),
)
VOLUME = KindRules(
    set_defaults=_set_volume_defaults,
    prepare_create=_create_volume,
    prepare_update=_update_volume,
    validate=_validate_volume,
    columns=(
        NAME,
        described("Capacity", dig("spec.capacity.storage", "0"), _PV_SPEC, "capacity"),
        described("Access Modes", lambda v: _print_modes(dig("spec.accessModes", [])(v)), _PV_SPEC, "accessModes"),
        _field("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", _PV_SPEC),
        described("Status", _phase, _PV_STATUS, "phase"),
        described("Claim", _claim_reference, _PV_SPEC, "claimRef"),
        TableColumn("StorageClass", _class_of, description="StorageClass of the pv"),
        TableColumn(
            "VolumeAttributesClass",
            dig("spec.volumeAttributesClassName", "<unset>"),
            description="VolumeAttributesClass of the pv",
        ),
        _field("Reason", "status.reason", _PV_STATUS),
        AGE,
        described("VolumeMode", dig("spec.volumeMode", "<unset>"), _PV_SPEC, "volumeMode", priority=1),
    ),
)
STORAGE_CLASS = KindRules(
    set_defaults=_set_class_defaults,
    validate=_validate_class,
    columns=(
        TableColumn("Name", _class_name, format="name", description=NAME.description),
        _field("Provisioner", "provisioner", _STORAGE + "StorageClass"),
        _field("ReclaimPolicy", "reclaimPolicy", _STORAGE + "StorageClass", "Delete"),
        _field("VolumeBindingMode", "volumeBindingMode", _STORAGE + "StorageClass", "Immediate"),
        _field("AllowVolumeExpansion", "allowVolumeExpansion", _STORAGE + "StorageClass", default=False),
        AGE,
    ),
)
CSI_NODE = KindRules(
    validate=_validate_csi_node,
    columns=(
        NAME,
        TableColumn(
            "Drivers",
            lambda obj: len(obj["spec"].get("drivers") or []),
            type="integer",
            description="Drivers indicates the number of CSI drivers registered on the node",
        ),
        AGE,
    ),
)
CSI_DRIVER = KindRules(
    set_defaults=_set_driver_defaults,
    columns=(
        NAME,
        _field("AttachRequired", "spec.attachRequired", _DRIVER, default=True, kind="boolean"),
        _field("PodInfoOnMount", "spec.podInfoOnMount", _DRIVER, default=False, kind="boolean"),
        _field("StorageCapacity", "spec.storageCapacity", _DRIVER, default=False, kind="boolean"),
        described(
            "TokenRequests",
            lambda obj: ",".join(t.get("audience", "") for t in obj["spec"].get("tokenRequests", [])) or "<unset>",
            _DRIVER,
            "tokenRequests",
        ),
        _field("RequiresRepublish", "spec.requiresRepublish", _DRIVER, default=False, kind="boolean"),
        described(
            "Modes",
            lambda obj: ",".join(obj["spec"].get("volumeLifecycleModes", [])) or "<none>",
            _DRIVER,
            "volumeLifecycleModes",
        ),
        AGE,
    ),
)
CSI_CAPACITY = KindRules(
    columns=(
        NAME,
        _field("StorageClassName", "storageClassName", _STORAGE + "CSIStorageCapacity"),
        _field("Capacity", "capacity", _STORAGE + "CSIStorageCapacity", "<unset>"),
    ),
)
VOLUME_ATTACHMENT = KindRules(
    columns=(
        NAME,
        TableColumn(
            "Attacher",
            dig("spec.attacher"),
            format="name",
            description=_field("", "spec.attacher", _STORAGE + "VolumeAttachmentSpec").description,
        ),
        _field("PV", "spec.source.persistentVolumeName", _STORAGE + "VolumeAttachmentSource"),
        _field("Node", "spec.nodeName", _STORAGE + "VolumeAttachmentSpec"),
        _field("Attached", "status.attached", _STORAGE + "VolumeAttachmentStatus", default=False, kind="boolean"),
        AGE,
    ),
)
