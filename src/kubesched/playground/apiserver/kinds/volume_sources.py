"""What is wrong with the source of a volume and with the spec of a claim: rules that pods and templates share.

``source_errors`` looks at one source by its name, of a pod or a PersistentVolume. Sources that only pods have:
``pods/volumes.py``. A few names in paths are not those of the fields (``persistentDisk``, ``initiatorname``); clients
are told so by the real server.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kubesched.k8s.model import quantity
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors, dns_subdomain_errors, driver_name_errors
from kubesched.playground.apiserver.kinds.metadata import label_selector_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

MORE_THAN_ONE = "may not specify more than 1 volume type"
_HOST_PATH_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
)
_REQUIRED = {
    "nfs": ("server", "path"),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "flexVolume": ("driver",),
    "glusterfs": ("endpoints", "path"),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "vsphereVolume": ("volumePath",),
}
_NAMED_IN_PATHS = {"gcePersistentDisk": "persistentDisk"}
_NAMED_WHEN_SECOND = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_ISCSI_NAMES = {
    "iqn": r"iqn\.[0-9]{4}-[0-9]{2}\.[0-9A-Za-z.-]+:[^,;*&$|\s]+",
    "eui": r"eui.[0-9A-Za-z]{16}",
    "naa": r"naa.[0-9A-Za-z]{32}",
}
_LONGEST_ISCSI_NAME = 64
_ISCSI_TOO_LONG = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)
_PARTITION_RANGE = "must be between 1 and 255, inclusive"
_BYTE_RANGE = "must be between 0 and 255, inclusive"
_REGISTRIES = "must be a host:port pair or multiple pairs separated by commas"
_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED_URI = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_URI = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_LONGEST_TENANT = 64
_CSI_SECRETS = (
    *("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"),
)

_EMPTY_IS_SAID = ("hostPath", "azureDisk")
_DEFAULTS: dict[str, Object] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
}


def set_source_defaults(holder: Object) -> None:
    """What a source has when nothing is said; ``holder`` is a volume of a pod or the spec of a PersistentVolume."""
    for sort, defaults in _DEFAULTS.items():
        if sort in holder:
            for name, value in defaults.items():
                if name not in holder[sort] or (holder[sort][name] == "" and sort not in _EMPTY_IS_SAID):
                    holder[sort][name] = value


def second_source_error(sort: str, path: str) -> InvalidField:
    return errors.forbidden(f"{path}.{_NAMED_WHEN_SECOND.get(sort, sort)}", MORE_THAN_ONE)


def source_errors(sort: str, source: Object, path: str, persistent: bool, volume_name: str) -> list[InvalidField]:
    """What is wrong with the source ``sort`` of the volume at ``path``."""
    at = f"{path}.{_NAMED_IN_PATHS.get(sort, sort)}"
    found = [errors.required(f"{at}.{name}") for name in _REQUIRED.get(sort, ()) if not source.get(name)]
    if sort == "iscsi":
        return _iscsi_errors(source, at, persistent, volume_name)
    rule = (_PERSISTENT if persistent else _OF_PODS).get(sort) or _ANYWHERE.get(sort)
    return found + (rule(source, at) if rule else [])


def no_step_back_errors(where: str, path: str) -> list[InvalidField]:
    return [errors.invalid(path, where, "must not contain '..'")] if ".." in where.split("/") else []


def _host_path_errors(source: Object, path: str) -> list[InvalidField]:
    where = source.get("path", "")
    if not where:
        return [errors.required(f"{path}.path")]
    found = no_step_back_errors(where, f"{path}.path")
    if source.get("type", "") not in _HOST_PATH_TYPES:
        found.append(errors.unsupported(f"{path}.type", source["type"], _HOST_PATH_TYPES))
    return found


def _local_errors(source: Object, path: str) -> list[InvalidField]:
    where = source.get("path", "")
    return no_step_back_errors(where, f"{path}.path") if where else [errors.required(f"{path}.path")]


def _nfs_errors(source: Object, path: str) -> list[InvalidField]:
    where = source.get("path", "")
    return [] if where.startswith("/") else [errors.invalid(f"{path}.path", where, "must be an absolute path")]


def _partition_errors(source: Object, path: str) -> list[InvalidField]:
    number = source.get("partition", 0)
    return [] if 0 <= number <= 255 else [errors.invalid(f"{path}.partition", number, _PARTITION_RANGE)]


def _iscsi_errors(source: Object, path: str, persistent: bool, volume_name: str) -> list[InvalidField]:
    portal, name, initiator = source.get("targetPortal", ""), source.get("iqn", ""), source.get("initiatorName")
    found = [] if portal else [errors.required(f"{path}.targetPortal")]
    is_too_long = initiator is not None and len(f"{volume_name}:{portal}") > _LONGEST_ISCSI_NAME
    if is_too_long and persistent:
        found.append(errors.invalid(f"{path}.targetportal", portal, _ISCSI_TOO_LONG))
    found += _iscsi_name_errors(name, f"{path}.iqn", persistent) if name else [errors.required(f"{path}.iqn")]
    if not 0 <= source.get("lun", 0) <= 255:
        found.append(errors.invalid(f"{path}.lun", source["lun"], _BYTE_RANGE))
    secret = source.get("secretRef")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and secret is None:
        found.append(errors.required(f"{path}.secretRef"))
    if persistent and secret is not None and not secret.get("name"):
        found.append(errors.required(f"{path}.secretRef.name"))
    if initiator is not None:
        found += _iscsi_name_errors(initiator, f"{path}.initiatorname", persistent)
    if is_too_long and not persistent:
        found.append(errors.invalid(f"{path.rpartition('.')[0]}.name", volume_name, _ISCSI_TOO_LONG))
    return found


def _iscsi_name_errors(name: str, path: str, persistent: bool) -> list[InvalidField]:
    form = _ISCSI_NAMES.get(name[:3])
    if form is None:
        why = "must be valid format" if persistent else "must be valid format starting with iqn, eui, or naa"
        return [errors.invalid(path, name, why)]
    return [] if re.fullmatch(form, name) else [errors.invalid(path, name, "must be valid format")]


def _fibre_channel_errors(source: Object, path: str) -> list[InvalidField]:
    targets, worldwide, number = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    found: list[InvalidField] = []
    if not targets and not worldwide:
        why = "must specify either targetWWNs or wwids, but not both"
        found.append(errors.required(f"{path}.targetWWNs", why))
    if targets and worldwide:
        why = "targetWWNs and wwids can not be specified simultaneously"
        found.append(errors.invalid(f"{path}.targetWWNs", targets, why))
    if targets and number is None:
        found.append(errors.required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif targets and number is not None and not 0 <= number <= 255:
        found.append(errors.invalid(f"{path}.lun", number, _BYTE_RANGE))
    return found


def _quobyte_errors(source: Object, path: str) -> list[InvalidField]:
    registry, tenant = source.get("registry", ""), source.get("tenant", "")
    found: list[InvalidField] = []
    if not registry:
        found.append(errors.required(f"{path}.registry", _REGISTRIES))
    elif len(tenant) > _LONGEST_TENANT:
        why = "must be a UUID and may not exceed a length of 64 characters"
        found.append(errors.required(f"{path}.tenant", why))
    else:
        unfit = [pair for pair in registry.split(",") if not re.fullmatch(r"([^:\[\]]*|\[[^\[\]]*\]):[^:]*", pair)]
        found += [errors.invalid(f"{path}.registry", registry, _REGISTRIES) for _ in unfit]
    return found if source.get("volume") else [*found, errors.required(f"{path}.volume")]


def _persistent_glusterfs_errors(source: Object, path: str) -> list[InvalidField]:
    namespace, at = source.get("endpointsNamespace"), f"{path}.endpointsNamespace"
    if namespace is None:
        return []
    if not namespace:
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        return [errors.invalid(at, namespace, why)]
    return errors.all_invalid(at, namespace, dns_label_errors(namespace))


def _flocker_errors(source: Object, path: str) -> list[InvalidField]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    found: list[InvalidField] = []
    if not name and not uuid:
        found.append(errors.required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        found.append(errors.invalid(path, "resource", why))
    if "/" in name:
        found.append(errors.invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return found


def _flex_errors(source: Object, path: str) -> list[InvalidField]:
    why = "kubernetes.io and k8s.io namespaces are reserved"
    return [
        errors.invalid(errors.key(f"{path}.options", name), name, why)
        for name in sorted(source.get("options") or {})
        if ("." + name.partition("/")[0].lower()).endswith((".kubernetes.io", ".k8s.io"))
    ]


def _azure_disk_errors(source: Object, path: str) -> list[InvalidField]:
    uri, mode, kind = source.get("diskURI", ""), source.get("cachingMode"), source.get("kind")
    found: list[InvalidField] = []
    if mode is not None and mode not in _CACHING_MODES:
        found.append(errors.unsupported(f"{path}.cachingMode", mode, _CACHING_MODES))
    if kind is not None and kind not in _DISK_KINDS:
        found.append(errors.unsupported(f"{path}.kind", kind, _DISK_KINDS))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        found.append(errors.unsupported(f"{path}.diskURI", uri, (_MANAGED_URI,)))
    if kind is not None and kind != "Managed" and not uri.startswith("https://"):
        found.append(errors.unsupported(f"{path}.diskURI", uri, (_BLOB_URI,)))
    return found


def _persistent_azure_file_errors(source: Object, path: str) -> list[InvalidField]:
    return [errors.required(f"{path}.secretNamespace")] if source.get("secretNamespace") == "" else []


def _secret_name_errors(source: Object, path: str) -> list[InvalidField]:
    secret = source.get("secretRef")
    return [errors.required(f"{path}.secretRef.name")] if secret is not None and not secret.get("name") else []


def _secret_place_errors(source: Object, path: str) -> list[InvalidField]:
    secret = source.get("secretRef")
    if secret is None:
        return []
    return [errors.required(f"{path}.secretRef.{name}") for name in ("name", "namespace") if not secret.get(name)]


def _storageos_errors(source: Object, path: str) -> list[InvalidField]:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    found = [] if name else [errors.required(f"{path}.volumeName")]
    if name:
        found += errors.all_invalid(f"{path}.volumeName", name, dns_label_errors(name))
    if namespace:
        found += errors.all_invalid(f"{path}.volumeNamespace", namespace, dns_label_errors(namespace))
    return found


def _persistent_csi_errors(source: Object, path: str) -> list[InvalidField]:
    found = driver_name_errors(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        found.append(errors.required(f"{path}.volumeHandle"))
    for name in _CSI_SECRETS:
        if name in source:
            found += _secret_reference_errors(source[name], f"{path}.{name}")
    return found


def _secret_reference_errors(reference: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for part, rule in (("name", dns_subdomain_errors), ("namespace", dns_label_errors)):
        text, at = reference.get(part, ""), f"{path}.{part}"
        found += errors.all_invalid(at, text, rule(text)) if text else [errors.required(at)]
    return found


_Rule = Callable[[Object, str], list[InvalidField]]

_ANYWHERE: dict[str, _Rule] = {
    "hostPath": _host_path_errors,
    "local": _local_errors,
    "nfs": _nfs_errors,
    "gcePersistentDisk": _partition_errors,
    "awsElasticBlockStore": _partition_errors,
    "fc": _fibre_channel_errors,
    "quobyte": _quobyte_errors,
    "flocker": _flocker_errors,
    "flexVolume": _flex_errors,
    "azureDisk": _azure_disk_errors,
}
_PERSISTENT: dict[str, _Rule] = {
    "glusterfs": _persistent_glusterfs_errors,
    "azureFile": _persistent_azure_file_errors,
    "cinder": _secret_place_errors,
    "storageos": lambda source, path: _storageos_errors(source, path) + _secret_place_errors(source, path),
    "csi": _persistent_csi_errors,
}
_OF_PODS: dict[str, _Rule] = {
    "cinder": _secret_name_errors,
    "storageos": lambda source, path: _storageos_errors(source, path) + _secret_name_errors(source, path),
}


ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_DEFAULT_GROUP = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"


def claim_spec_errors(
    spec: Object, path: str, any_group: bool = False, any_label_value: bool = False
) -> list[InvalidField]:
    """``any_group`` and ``any_label_value``: data sources and selectors were accepted once and are not looked at."""
    modes = spec.get("accessModes") or []
    found = [] if modes else [errors.required(f"{path}.accessModes", "at least 1 access mode is required")]
    found += label_selector_errors(spec.get("selector"), f"{path}.selector", check_values=not any_label_value)
    found += mode_errors(modes, f"{path}.accessModes")
    amount = spec.get("resources", {}).get("requests", {}).get("storage")
    at = errors.key(f"{path}.resources", "storage")
    found += [errors.required(at)] if amount is None else positive_amount_errors(amount, at)
    found += class_name_errors(spec.get("storageClassName"), f"{path}.storageClassName")
    if spec.get("volumeMode", "Filesystem") not in VOLUME_MODES:
        found.append(errors.unsupported(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES))
    found += _data_source_errors(spec, path, any_group)
    return found + class_name_errors(spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName")


def positive_amount_errors(amount: str, path: str) -> list[InvalidField]:
    is_positive = quantity.parse(amount).nanos > 0
    return [] if is_positive else [errors.invalid(path, amount, "must be greater than zero")]


def class_name_errors(name: str | None, path: str) -> list[InvalidField]:
    return errors.all_invalid(path, name, dns_subdomain_errors(name)) if name else []


def mode_errors(modes: list[str], path: str) -> list[InvalidField]:
    found = [errors.unsupported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = [mode for mode in modes if mode in ACCESS_MODES]
    if "ReadWriteOncePod" in known and any(mode != "ReadWriteOncePod" for mode in known):
        found.append(errors.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def _data_source_errors(spec: Object, path: str, any_group: bool) -> list[InvalidField]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    found: list[InvalidField] = []
    for name, one in (("dataSource", source), ("dataSourceRef", reference)):
        if one is not None:
            found += _one_source_errors(one, f"{path}.{name}", any_group)
    if reference is None or source is None:
        return found
    if reference.get("namespace"):
        found.append(errors.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        # the real server means to show the path of dataSource here, and shows that it is an object without fields
        found.append(errors.invalid(path, {}, "must match dataSourceRef"))
    return found


def _one_source_errors(source: Object, path: str, any_group: bool) -> list[InvalidField]:
    found = [errors.required(f"{path}.{name}") for name in ("name", "kind") if not source.get(name)]
    group, kind, namespace = source.get("apiGroup") or "", source.get("kind", ""), source.get("namespace")
    if not group and kind != "PersistentVolumeClaim":
        found.append(errors.invalid(path, kind, _DEFAULT_GROUP))
    if group and not any_group:
        found += errors.all_invalid(f"{path}.apiGroup", group, dns_subdomain_errors(group))
    if namespace:
        found += errors.all_invalid(f"{path}.namespace", namespace, dns_label_errors(namespace))
    return found
