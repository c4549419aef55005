"""Volumes, claims, storage classes and what CSI drivers say of themselves.

Defaults, protection finalizers, validation, tables.
"""

from __future__ import annotations

from kubesched.playground.apiserver.kinds import storage_checks, volume_checks, warnings
from kubesched.playground.apiserver.kinds.amounts import round_up_to_milli
from kubesched.playground.apiserver.kinds.metadata import protect
from kubesched.playground.apiserver.kinds.pods import admission
from kubesched.playground.apiserver.kinds.serving import AGE, DEFAULT_COLUMNS, NAME, KindRules, described, dig, name_of
from kubesched.playground.apiserver.kinds.volume_checks import volume_errors
from kubesched.playground.apiserver.kinds.volume_sources import set_source_defaults
from kubesched.playground.apiserver.served_resource import Object, TableColumn, WriteContext

_CORE = "io.k8s.api.core.v1."
_STORAGE = "io.k8s.api.storage.v1."
_SHORT_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_TOKENS_OUTSIDE_SECRETS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def _set_claim_defaults(claim: Object) -> None:
    claim["spec"].setdefault("volumeMode", "Filesystem")
    claim["status"].setdefault("phase", "Pending")
    for sort in ("requests", "limits"):
        round_up_to_milli(claim["spec"].get("resources", {}).get(sort, {}))


def _create_claim(claim: Object, ctx: WriteContext) -> None:
    claim["status"] = {"phase": "Pending"}
    protect(claim, "kubernetes.io/pvc-protection")
    spec = claim["spec"]
    volume_checks.settle_sources(spec, None)
    if "storageClassName" in spec or _OLD_CLASS in claim["metadata"].get("annotations", {}):
        return
    defaults = sorted(filter(_is_default, ctx.lookup.list("storageclasses.storage.k8s.io")), key=name_of)
    if defaults:
        newest = max(defaults, key=lambda one: one["metadata"].get("creationTimestamp", ""))
        spec["storageClassName"] = name_of(newest)


def _update_claim(claim: Object, old: Object, ctx: WriteContext) -> None:
    if not ctx.subresource:
        volume_checks.settle_sources(claim["spec"], old["spec"])


def _admit_claim(claim: Object, old: Object | None, ctx: WriteContext) -> None:
    if ctx.subresource:
        return
    ctx.warnings += warnings.for_claim(claim)
    if old is not None:
        volume_checks.refuse_resize(claim, old, ctx.lookup)
    admission.validate_claim(claim, old, ctx)


def _set_volume_defaults(volume: Object) -> None:
    volume["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    volume["spec"].setdefault("volumeMode", "Filesystem")
    volume["status"].setdefault("phase", "Pending")
    round_up_to_milli(volume["spec"].get("capacity", {}))
    set_source_defaults(volume["spec"])


def _create_volume(volume: Object, ctx: WriteContext) -> None:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": ctx.now}
    protect(volume, "kubernetes.io/pv-protection")


def _update_volume(volume: Object, old: Object, ctx: WriteContext) -> None:
    if ctx.subresource != "status":
        return
    status, before = volume["status"], old["status"]
    changed_at, known = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        if changed_at is None and known is not None:
            status["lastPhaseTransitionTime"] = known
    elif changed_at is None or changed_at == known:
        status["lastPhaseTransitionTime"] = ctx.now


def _set_class_defaults(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _create_attributes_class(obj: Object, _: WriteContext) -> None:
    protect(obj, "kubernetes.io/vac-protection")


def _warn_of_driver(obj: Object, old: Object | None, ctx: WriteContext) -> None:
    requests = obj["spec"].get("tokenRequests")
    is_known = old is not None and old["spec"].get("tokenRequests") == requests
    if requests and not is_known and "serviceAccountTokenInSecrets" not in obj["spec"]:
        ctx.warnings.append(_TOKENS_OUTSIDE_SECRETS)


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


def _print_modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in modes)


def _phase(obj: Object) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(dig("status.phase")(obj))


def _claim_reference(volume: Object) -> str:
    claim = volume["spec"].get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _claim_capacity(claim: Object) -> object:
    return dig("status.capacity.storage", "0")(claim) if claim["spec"].get("volumeName") else ""


def _class_of(obj: Object) -> str:
    old: str = obj["metadata"].get("annotations", {}).get(_OLD_CLASS, "")
    return old or str(dig("spec.storageClassName")(obj))


def _is_default(obj: Object) -> bool:
    annotations = obj["metadata"].get("annotations", {})
    return any(annotations.get(name) == "true" for name in _DEFAULT_CLASS)


def _class_name(obj: Object) -> str:
    return name_of(obj) + (" (default)" if _is_default(obj) else "")


def _field(label: str, path: str, schema: str, default: object = "", kind: str = "string") -> TableColumn:
    return described(label, dig(path, default), schema, path.rpartition(".")[2], type=kind)


_PV_SPEC, _PV_STATUS = _CORE + "PersistentVolumeSpec", _CORE + "PersistentVolumeStatus"
_PVC_SPEC, _PVC_STATUS = _CORE + "PersistentVolumeClaimSpec", _CORE + "PersistentVolumeClaimStatus"
_DRIVER = _STORAGE + "CSIDriverSpec"

CLAIM = KindRules(
    metadata_again="both",
    set_defaults=_set_claim_defaults,
    prepare_create=_create_claim,
    prepare_update=_update_claim,
    validate=volume_checks.claim_errors,
    validate_through={"status": volume_checks.status_errors},
    validate_admission=_admit_claim,
    columns=(
        NAME,
        described("Status", _phase, _PVC_STATUS, "phase"),
        _field("Volume", "spec.volumeName", _PVC_SPEC),
        described("Capacity", _claim_capacity, _PVC_STATUS, "capacity"),
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
    validate_through={"status": lambda new, old: []},
    validate_admission=lambda volume, _, ctx: ctx.warnings.extend(
        [] if ctx.subresource else warnings.for_volume(volume)
    ),
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
    validate=storage_checks.class_errors,
    validate_admission=lambda obj, _, ctx: ctx.warnings.extend(warnings.for_class(obj)),
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
    metadata_again="all",
    validate=storage_checks.node_errors,
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
    validate=storage_checks.driver_errors,
    validate_admission=_warn_of_driver,
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
ATTRIBUTES_CLASS = KindRules(
    metadata_again="both",
    prepare_create=_create_attributes_class,
    validate=storage_checks.attributes_class_errors,
    columns=(
        NAME,
        described("DriverName", dig("driverName"), _STORAGE + "VolumeAttributesClass", "driverName"),
        AGE,
    ),
)
VOLUME_ATTACHMENT = KindRules(
    metadata_again="all",
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
