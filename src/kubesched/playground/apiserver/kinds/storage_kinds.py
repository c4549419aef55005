"""Volumes, claims, storage classes and what CSI drivers say of themselves.

Defaults, protection finalizers, validation, tables.

Next: `volume_checks` for what is wrong with volumes and claims.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.k8s.model import quantity
from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds import volume_checks, warnings
from kubesched.playground.apiserver.kinds.amounts import round_up_to_milli
from kubesched.playground.apiserver.kinds.field_errors import dns_subdomain_errors, driver_name_errors
from kubesched.playground.apiserver.kinds.internal_form import internal_form
from kubesched.playground.apiserver.kinds.metadata import label_selector_errors, protect
from kubesched.playground.apiserver.kinds.pods import admission
from kubesched.playground.apiserver.kinds.serving import AGE, DEFAULT_COLUMNS, NAME, KindRules, described, dig, name_of
from kubesched.playground.apiserver.kinds.volume_checks import volume_errors, volume_spec_errors
from kubesched.playground.apiserver.kinds.volume_sources import set_source_defaults
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext

_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
_RECLAIM_POLICIES = ("Delete", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_CLASS_FIXED = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
_MOST_PARAMETERS, _MOST_PARAMETER_BYTES = 512, 256 * 1024
_LONGEST_NODE_ID = 256
_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE_MODES = ("Persistent", "Ephemeral")
_SHORTEST_TOKEN_S, _LONGEST_TOKEN_S = 600, 1 << 32
_SHORTEST_PERIOD_S = 10
_MOST_METADATA_BYTES, _LONGEST_ERROR = 256 * 1024, 1024


def class_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    """A StorageClass. Updates look only at what may not change, and at the rest as at a new one before that."""
    found = provisioner_errors(obj.get("provisioner", ""), "provisioner")
    found += _parameter_errors(obj.get("parameters") or {}, "parameters")
    policy, mode = obj["reclaimPolicy"], obj["volumeBindingMode"]
    if policy and policy not in _RECLAIM_POLICIES:
        found.append(errors.unsupported("reclaimPolicy", policy, _RECLAIM_POLICIES))
    if mode not in _BINDING_MODES:
        found.append(errors.unsupported("volumeBindingMode", mode, _BINDING_MODES))
    found += _topology_errors(obj.get("allowedTopologies") or [], "allowedTopologies")
    if old is not None:
        changed = [name for name in _CLASS_FIXED if (obj.get(name) or None) != (old.get(name) or None)]
        found += [errors.immutable(name, obj.get(name, "" if name == "provisioner" else None)) for name in changed]
    return found


def attributes_class_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    """A VolumeAttributesClass."""
    driver, parameters = obj.get("driverName", ""), obj.get("parameters") or {}
    found = provisioner_errors(driver, "driverName") + _parameter_errors(parameters, "parameters")
    if not parameters:
        found.append(errors.required("parameters", "must contain at least one key/value pair"))
    if old is None:
        return found
    changes = [
        errors.forbidden(name, f"updates to {name} are forbidden.")
        for name in ("driverName", "parameters")
        if obj.get(name) != old.get(name)
    ]
    return changes + found


def provisioner_errors(name: str, path: str) -> list[InvalidField]:
    if not name:
        return [errors.required(path)]
    return errors.all_invalid(path, name.lower(), label_key_errors(name.lower()))


def _parameter_errors(parameters: dict[str, str], path: str) -> list[InvalidField]:
    if len(parameters) > _MOST_PARAMETERS:
        return [errors.too_long(path, _MOST_PARAMETERS)]
    found = [errors.invalid(path, "", "field can not be empty.")] if "" in parameters else []
    if _n_bytes(parameters) > _MOST_PARAMETER_BYTES:
        found.append(errors.too_long(path, _MOST_PARAMETER_BYTES))
    return found


def _n_bytes(texts: dict[str, str]) -> int:
    return sum(len(name.encode()) + len(value.encode()) for name, value in texts.items())


def _topology_errors(terms: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: list[dict[str, frozenset[str]]] = []
    for position, term in enumerate(terms):
        at = f"{errors.index(path, position)}.matchLabelExpressions"
        allowed, wrong = _topology_term(term.get("matchLabelExpressions") or [], at)
        found += wrong + [errors.duplicate(at, "") for other in seen if other == allowed]
        # an empty term is as the places that the real server keeps free for all terms
        found += [errors.duplicate(at, "")] * (0 if allowed else len(terms))
        seen.append(allowed)
    return found


def _topology_term(expressions: Sequence[Object], path: str) -> tuple[dict[str, frozenset[str]], list[InvalidField]]:
    allowed: dict[str, frozenset[str]] = {}
    found: list[InvalidField] = []
    for place, expression in enumerate(expressions):
        here, key, values = errors.index(path, place), expression.get("key", ""), expression.get("values") or []
        if not values:
            found.append(errors.required(f"{here}.values"))
        found += [
            errors.duplicate(errors.index(f"{here}.values", number), value)
            for number, value in enumerate(values)
            if value in values[:number]
        ]
        found += errors.all_invalid(f"{here}.key", key, label_key_errors(key))
        if key in allowed:
            found.append(errors.duplicate(f"{here}.key", key))
        allowed[key] = frozenset(values)
    return allowed, found


def node_errors(node: Object, old: Object | None) -> list[InvalidField]:
    """A CSINode. A driver that stays on a node stays as it is, but for how many volumes it can attach."""
    drivers = node["spec"].get("drivers") or []
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, driver in enumerate(drivers):
        at, name = errors.index("spec.drivers", position), driver.get("name", "")
        found += driver_name_errors(name, f"{at}.name") + _node_id_errors(driver.get("nodeID", ""), f"{at}.nodeID")
        count = driver.get("allocatable", {}).get("count", 0)
        if count < 0:
            found.append(errors.invalid(f"{at}.allocatable.count", count, "must be greater than or equal to 0"))
        if name in seen:
            found.append(errors.duplicate(f"{at}.name", name))
        seen.add(name)
        found += _topology_key_errors(driver.get("topologyKeys") or [], at)
    for before in old["spec"].get("drivers") or [] if old else []:
        found += [
            errors.immutable("spec.drivers", internal_form(_without_allocatable(driver), "storage.CSINodeDriver"))
            for driver in drivers
            if driver.get("name") == before.get("name") and _without_allocatable(driver) != _without_allocatable(before)
        ]
    return found


def _without_allocatable(driver: Object) -> Object:
    return {name: value for name, value in driver.items() if name != "allocatable" and value not in (None, [])}


def _node_id_errors(node_id: str, path: str) -> list[InvalidField]:
    if not node_id:
        return [errors.required(path)]
    if len(node_id.encode()) > _LONGEST_NODE_ID:
        return [errors.invalid(path, node_id, f"must be {_LONGEST_NODE_ID} characters or less")]
    return []


def _topology_key_errors(keys: Sequence[str], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, key in enumerate(keys):
        if not key:
            found.append(errors.required(path))
        if key in keys[:position]:
            found.append(errors.duplicate(path, key))
        found += errors.all_invalid(path, key, label_key_errors(key))
    return found


def driver_errors(driver: Object, old: Object | None) -> list[InvalidField]:
    """A CSIDriver."""
    spec = driver["spec"]
    found: list[InvalidField] = []
    if spec["fsGroupPolicy"] not in _FS_GROUP_POLICIES:
        found.append(errors.unsupported("spec.fsGroupPolicy", spec["fsGroupPolicy"], _FS_GROUP_POLICIES))
    requests = spec.get("tokenRequests") or []
    found += _token_request_errors(requests, "spec.tokenRequests")
    modes = spec.get("volumeLifecycleModes") or []
    unknown = [mode for mode in modes if mode not in _LIFECYCLE_MODES]
    found += [errors.unsupported("spec.volumeLifecycleModes", mode, _LIFECYCLE_MODES) for mode in unknown]
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _SHORTEST_PERIOD_S:
        at = "spec.nodeAllocatableUpdatePeriodSeconds"
        found.append(errors.invalid(at, period, f"must be greater than or equal to {_SHORTEST_PERIOD_S} seconds"))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not requests:
        why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        found.append(errors.invalid("spec.serviceAccountTokenInSecrets", in_secrets, why))
    if old is None:
        return found
    if spec["attachRequired"] != old["spec"].get("attachRequired"):
        found.append(errors.immutable("spec.attachedRequired", spec["attachRequired"]))
    if modes != (old["spec"].get("volumeLifecycleModes") or []):
        found.append(errors.immutable("spec.volumeLifecycleModes", spec.get("volumeLifecycleModes")))
    return found


def _token_request_errors(requests: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    audiences: set[str] = set()
    for position, request in enumerate(requests):
        at, audience, seconds = (
            errors.index(path, position),
            request.get("audience", ""),
            request.get("expirationSeconds"),
        )
        if audience in audiences:
            found.append(errors.duplicate(f"{at}.audience", audience))
            continue
        audiences.add(audience)
        if seconds is not None and seconds < _SHORTEST_TOKEN_S:
            why = "may not specify a duration less than 10 minutes"
            found.append(errors.invalid(f"{at}.expirationSeconds", seconds, why))
        if seconds is not None and seconds > _LONGEST_TOKEN_S:
            why = "may not specify a duration larger than 2^32 seconds"
            found.append(errors.invalid(f"{at}.expirationSeconds", seconds, why))
    return found


def capacity_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    """A CSIStorageCapacity."""
    found = label_selector_errors(obj.get("nodeTopology"), "nodeTopology")
    name = obj.get("storageClassName", "")
    found += errors.all_invalid("storageClassName", name, dns_subdomain_errors(name))
    amount = obj.get("capacity")
    if amount is not None and quantity.parse(amount).nanos < 0:
        found.append(errors.invalid("capacity", amount, "must be greater than or equal to 0"))
    if old is not None:
        for sort in ("nodeTopology", "storageClassName"):
            if obj.get(sort) != old.get(sort):
                found.append(errors.immutable(sort, obj.get(sort)))
    return found


def attachment_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    """A VolumeAttachment."""
    spec, status = obj["spec"], obj.get("status", {})
    found = driver_name_errors(spec.get("attacher", ""), "spec.attacher")
    found += _attachment_source_errors(spec.get("source", {}), "spec.source")
    node, volume = spec.get("nodeName", ""), spec.get("source", {}).get("persistentVolumeName")
    found += errors.all_invalid("spec.nodeName", node, dns_subdomain_errors(node))
    if _n_bytes(status.get("attachmentMetadata") or {}) > _MOST_METADATA_BYTES:
        found.append(errors.too_long("status.attachmentMetadata", _MOST_METADATA_BYTES))
    for sort in ("attachError", "detachError"):
        found += _volume_error_errors(status.get(sort), f"status.{sort}")
    if volume is not None:
        found += errors.all_invalid("spec.source.persistentVolumeName", volume, dns_subdomain_errors(volume))
    if old is not None and spec != old["spec"]:
        found.append(errors.immutable("spec", internal_form(spec, "storage.VolumeAttachmentSpec")))
    return found


def _attachment_source_errors(source: Object, path: str) -> list[InvalidField]:
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if volume is None and inline is None:
        return [errors.required(path, _ONE_SOURCE)]
    if volume is not None and inline is not None:
        return [errors.forbidden(path, _ONE_SOURCE)]
    if inline is not None:
        return volume_spec_errors(inline, "", f"{path}.inlineVolumeSpec", inline=True)
    why = "must specify non empty persistentVolumeName"
    return [] if volume else [errors.required(f"{path}.persistentVolumeName", why)]


def _volume_error_errors(error: Object | None, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if error and len(error.get("message", "").encode()) > _LONGEST_ERROR:
        found.append(errors.too_long(f"{path}.message", _MOST_METADATA_BYTES))
    code = (error or {}).get("errorCode")
    if code is not None and code < 0:
        found.append(errors.invalid(f"{path}.errorCode", code, "must be between 0 and 2147483647, inclusive"))
    return found


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
    validate=class_errors,
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
    validate=node_errors,
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
    validate=driver_errors,
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
CSI_CAPACITY = KindRules(validate=capacity_errors, metadata_again="both", columns=DEFAULT_COLUMNS)
ATTRIBUTES_CLASS = KindRules(
    metadata_again="both",
    prepare_create=_create_attributes_class,
    validate=attributes_class_errors,
    columns=(
        NAME,
        described("DriverName", dig("driverName"), _STORAGE + "VolumeAttributesClass", "driverName"),
        AGE,
    ),
)
VOLUME_ATTACHMENT = KindRules(
    metadata_again="all",
    validate=attachment_errors,
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
