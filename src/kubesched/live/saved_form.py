"""What of a cluster goes into a file: the fields that decisions and simulations look at, and nothing else.

Objects are written from the structs of the model, so whatever the model does not know (commands, arguments, values of
environment variables, managed fields, addresses …) cannot get into the file, whatever servers add in the future. Of
what the model does know, these are left out too: all annotations but `KEPT_ANNOTATIONS`, messages of conditions,
parameters that only a driver understands, names of environment variables, paths on nodes, and where volumes are served
and with which secret.

What is left reads back as objects about which every decision is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.k8s.client.resources import POD_GROUPS
from kubesched.k8s.dumped_kinds import ALL_RESOURCES
from kubesched.k8s.model.apps import JobCondition
from kubesched.k8s.model.core import Container, PodCondition
from kubesched.k8s.model.csi_migration import MIGRATED_PLUGINS_ANNOTATION
from kubesched.k8s.model.kubernetes_yaml import plain_yaml
from kubesched.k8s.model.manifests import DUMPED_FIELD
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.resource import (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    AllocatedDeviceStatus,
    DeviceCondition,
    OpaqueDeviceConfiguration,
)
from kubesched.k8s.model.scheduling import GroupCondition, PodGroup, Workload, has_fields_of_next_version
from kubesched.k8s.model.storage import (
    BIND_COMPLETED_ANNOTATION,
    BOUND_BY_CONTROLLER_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    STORAGE_CLASS_ANNOTATION,
    StorageClass,
)
from kubesched.k8s.model.volumes import (
    AzureFileVolumeSource,
    CSIPersistentVolumeSource,
    CSIVolumeSource,
    HostPathVolumeSource,
    ISCSIVolumeSource,
    PersistentVolumeClaimSpec,
)
from kubesched.older.plugins.node_checks import PREFER_AVOID_PODS_ANNOTATION

KEPT_ANNOTATIONS = frozenset(
    {
        BIND_COMPLETED_ANNOTATION,
        BOUND_BY_CONTROLLER_ANNOTATION,
        EXTENDED_RESOURCE_CLAIM_ANNOTATION,
        MIGRATED_PLUGINS_ANNOTATION,
        PREFER_AVOID_PODS_ANNOTATION,
        SELECTED_NODE_ANNOTATION,
        STORAGE_CLASS_ANNOTATION,
        # What only simulations look at.
        "batch.kubernetes.io/cronjob-scheduled-timestamp",
        "batch.kubernetes.io/job-completion-index",
        "cluster-autoscaler.kubernetes.io/daemonset-pod",
        "controller.kubernetes.io/pod-deletion-cost",
        "deployment.kubernetes.io/revision",
        "kubernetes.io/config.mirror",
        "kubesched.dev/duration",
        "kubesched.dev/exit-code",
        "kubesched.dev/result",
        "pv.kubernetes.io/provisioned-by",
        "resource.kubernetes.io/pod-claim-name",
        "storageclass.kubernetes.io/is-default-class",
    }
)


_LEFT_OUT = "left-out"
"""Where there must be something."""

API_VERSIONS: dict[type[KubeObject], str] = {known.type: known.api_version for known in ALL_RESOURCES}


def saved_list(objects: Iterable[KubeObject], dumped: Iterable[str] = ()) -> dict[str, Any]:
    """A `v1` List of these objects, as plain data; `dumped` are the resources of which it holds all there were."""
    named = {DUMPED_FIELD: list(dumped)} if dumped else {}
    return {"apiVersion": "v1", "kind": "List", **named, "items": [saved_form(item) for item in objects]}


def saved_form(item: KubeObject) -> dict[str, Any]:
    kind = type(item)
    fields: dict[str, Any] = msgspec.to_builtins(reduced(item))
    return {"apiVersion": _api_version(item), "kind": kind.__name__, **fields}


def _api_version(item: KubeObject) -> str:
    """Of groups the version whose fields it has: v1.36 and v1.37 write them in different ones."""
    if isinstance(item, PodGroup | Workload) and not has_fields_of_next_version(item):
        return POD_GROUPS.api_version
    return API_VERSIONS[type(item)]


def as_json(saved: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(saved), indent=1) + b"\n"


def as_yaml(saved: dict[str, Any]) -> bytes:
    return plain_yaml(saved).encode()


def reduced(value: Any) -> Any:
    """The value without what is not saved, wherever it hangs in it; the value itself where nothing goes."""
    if isinstance(value, tuple):
        items = tuple(map(reduced, value))
        return value if all(map(is_, items, value)) else items
    if not isinstance(value, msgspec.Struct):
        return value
    changed = {}
    for name in value.__struct_fields__:
        old = getattr(value, name)
        new = reduced(old)
        if new is not old:
            changed[name] = new
    return without_secrets(replace(value, **changed) if changed else value)


def without_secrets(value: msgspec.Struct) -> msgspec.Struct:
    """The struct without those of its own fields that may hold what others should not see."""
    match value:
        case ObjectMeta(annotations=dict() as annotations):
            kept = {key: text for key, text in annotations.items() if key in KEPT_ANNOTATIONS}
            return replace(value, annotations=kept or None)
        case Container(env=tuple() as env):
            from_files = tuple(replace(variable, name="") for variable in env if _is_from_file(variable))
            return replace(value, env=from_files or None)
        case PodCondition() | DeviceCondition() | JobCondition() | GroupCondition():
            return replace(value, message="")
        case StorageClass() | OpaqueDeviceConfiguration():
            return replace(value, parameters=None)
        case AllocatedDeviceStatus():
            return replace(value, data=None, network_data=None)
        case CSIVolumeSource() | CSIPersistentVolumeSource():
            return replace(value, volume_attributes=None)
        case AzureFileVolumeSource():
            namespace = _LEFT_OUT if value.secret_namespace else None
            return replace(value, secret_name=_LEFT_OUT, secret_namespace=namespace, share_name=_LEFT_OUT)
        case ISCSIVolumeSource():
            return replace(value, target_portal=_LEFT_OUT)
        case HostPathVolumeSource():
            return replace(value, path=f"/{_LEFT_OUT}")
        case PersistentVolumeClaimSpec():
            return replace(value, data_source=None)
        case _:
            return value


def _is_from_file(variable: Any) -> bool:
    """Some nodes can do this and others cannot, so it takes part in decisions."""
    return variable.value_from is not None and variable.value_from.file_key_ref is not None
