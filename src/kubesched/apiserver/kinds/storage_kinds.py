"""Volumes, claims, storage classes and what CSI drivers say of themselves.

Defaults, protection finalizers, validation, tables.
"""

from __future__ import annotations

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds import storage_checks
from kubesched.apiserver.kinds.amounts import round_up_to_milli
from kubesched.apiserver.kinds.claim_specs import claim_spec_errors
from kubesched.apiserver.kinds.kind import InvalidField, Object, TableColumn, WriteContext
from kubesched.apiserver.kinds.serving import KindRules
from kubesched.apiserver.kinds.table_columns import AGE, DEFAULT_COLUMNS, NAME, described, dig, name_of
from kubesched.apiserver.kinds.volume_checks import volume_errors
from kubesched.model import quantity

_CORE = "io.k8s.api.core.v1."
_STORAGE = "io.k8s.api.storage.v1."
_SHORT_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_CLASS_FIXED = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_SOURCES = (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io"))
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


def _is_old_source(reference: Object) -> bool:
    return (reference.get("kind"), reference.get("apiGroup", "")) in _SOURCES


def _agree_on_source(spec: Object) -> None:
    """The two ways to name a source say the same; the older one knows volumes and snapshots only."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and not _is_old_source(source):
        del spec["dataSource"]
    elif source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif source is None and reference is not None and "namespace" not in reference:
        spec |= {"dataSource": dict(reference)} if _is_old_source(reference) else {}


def _create_claim(claim: Object, ctx: WriteContext) -> None:
    claim["status"] = {"phase": "Pending"}
    _protect(claim, "kubernetes.io/pvc-protection")
    spec = claim["spec"]
    _agree_on_source(spec)
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


def _validate_claim(claim: Object, old: Object | None) -> list[InvalidField]:
    spec = claim["spec"]
    found = claim_spec_errors(spec, "spec")
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
    found += storage_checks.topology_errors(obj.get("allowedTopologies", []), "allowedTopologies")
    if old is not None:
        changed = [name for name in _CLASS_FIXED if obj.get(name) != old.get(name)]
        found += [errors.immutable(name, obj.get(name)) for name in changed]
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


def _count_driver_changes(obj: Object, old: Object, _: WriteContext) -> None:
    """A driver's generation begins with its first change."""
    if obj["spec"] != old["spec"]:
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _validate_csi_node(obj: Object, old: Object | None) -> list[InvalidField]:
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
    return found if old is None else found + storage_checks.driver_change_errors(obj, old)


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
    metadata_again="both",
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
    metadata_again="both",
    set_defaults=_set_volume_defaults,
    prepare_create=_create_volume,
    prepare_update=_update_volume,
    validate=volume_errors,
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
    metadata_again="both",
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
    prepare_update=_count_driver_changes,
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
CSI_CAPACITY = KindRules(validate=storage_checks.capacity_errors, metadata_again="both", columns=DEFAULT_COLUMNS)
VOLUME_ATTACHMENT = KindRules(
    validate=storage_checks.attachment_errors,
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
