"""Which kinds the scripted server has and where: paths taken apart, and what discovery tells.

A path says which kind, which namespace, which object, and what is asked of it. A test may take kinds away, as on an
older server, or add its own; `/api`, `/apis` and the lists below them tell what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.scripted_server.faults import RefusalError


@dataclass(frozen=True, slots=True)
class ServedKind:
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`pods`, or with a group `leases.coordination.k8s.io`: also the key of its objects, whatever the version."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_NAMESPACED = {
    ("", "v1"): {
        "pods": "Pod",
        "services": "Service",
        "replicationcontrollers": "ReplicationController",
        "persistentvolumeclaims": "PersistentVolumeClaim",
        "events": "Event",
        "configmaps": "ConfigMap",
        "secrets": "Secret",
        "serviceaccounts": "ServiceAccount",
        "resourcequotas": "ResourceQuota",
        "limitranges": "LimitRange",
    },
    ("apps", "v1"): {
        "replicasets": "ReplicaSet",
        "statefulsets": "StatefulSet",
        "controllerrevisions": "ControllerRevision",
        "deployments": "Deployment",
        "daemonsets": "DaemonSet",
    },
    ("autoscaling", "v2"): {"horizontalpodautoscalers": "HorizontalPodAutoscaler"},
    ("batch", "v1"): {"jobs": "Job", "cronjobs": "CronJob"},
    ("coordination.k8s.io", "v1"): {"leases": "Lease"},
    ("events.k8s.io", "v1"): {"events": "Event"},
    ("policy", "v1"): {"poddisruptionbudgets": "PodDisruptionBudget"},
    ("resource.k8s.io", "v1"): {
        "resourceclaims": "ResourceClaim",
        "resourceclaimtemplates": "ResourceClaimTemplate",
    },
    ("scheduling.k8s.io", "v1alpha2"): {"podgroups": "PodGroup", "workloads": "Workload"},
    ("scheduling.k8s.io", "v1alpha3"): {"compositepodgroups": "CompositePodGroup"},
    ("storage.k8s.io", "v1"): {"csistoragecapacities": "CSIStorageCapacity"},
}

_CLUSTER_WIDE = {
    ("", "v1"): {"nodes": "Node", "namespaces": "Namespace", "persistentvolumes": "PersistentVolume"},
    ("apiextensions.k8s.io", "v1"): {"customresourcedefinitions": "CustomResourceDefinition"},
    ("resource.k8s.io", "v1"): {"resourceslices": "ResourceSlice", "deviceclasses": "DeviceClass"},
    ("resource.k8s.io", "v1beta2"): {"devicetaintrules": "DeviceTaintRule"},
    ("node.k8s.io", "v1"): {"runtimeclasses": "RuntimeClass"},
    ("scheduling.k8s.io", "v1"): {"priorityclasses": "PriorityClass"},
    ("storage.k8s.io", "v1"): {
        "storageclasses": "StorageClass",
        "csinodes": "CSINode",
        "csidrivers": "CSIDriver",
        "volumeattachments": "VolumeAttachment",
        "volumeattributesclasses": "VolumeAttributesClass",
    },
}

SERVED_KINDS: tuple[ServedKind, ...] = tuple(
    ServedKind(group, version, plural, kind, namespaced)
    for namespaced, table in ((True, _NAMESPACED), (False, _CLUSTER_WIDE))
    for (group, version), kinds in table.items()
    for plural, kind in kinds.items()
)
"""What a new server has."""


_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class Address:
    """What a path points at; with no name, the whole collection."""

    served: ServedKind
    namespace: str | None
    name: str | None
    subresource: str | None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else str(self.name)

    @property
    def resource(self) -> str:
        """As RBAC names it: `pods/binding`."""
        plural = self.served.plural
        return f"{plural}/{self.subresource}" if self.subresource else plural


class RouteTable:
    """The kinds that are served now."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._kinds = {(kind.group, kind.version, kind.plural): kind for kind in kinds}

    def add(self, kind: ServedKind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind

    def remove(self, plural: str, version: str = "") -> None:
        """This kind is no longer served; with a version, not in this one."""
        for at in [at for at in self._kinds if at[2] == plural and version in ("", at[1])]:
            del self._kinds[at]

    def kinds(self) -> list[ServedKind]:
        return list(self._kinds.values())

    def kind(self, name: str, group: str | None = None) -> ServedKind:
        """By kind, plural or `plural.group`, as tests name it."""
        for kind in self._kinds.values():
            if name in (kind.kind, kind.plural, kind.resource) and group in (None, kind.group):
                return kind
        raise KeyError(f"the scripted server has no kind {name!r}")

    def resolve(self, path: str) -> Address:
        parts = [part for part in path.split("/") if part]
        if parts[:1] == ["api"] and len(parts) >= 3:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[:1] == ["apis"] and len(parts) >= 4:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            raise RefusalError(404, "the server could not find the requested resource")
        namespace = None
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        served = self._kinds.get((group, version, rest[0]))
        if served is None or len(rest) > 3:
            raise RefusalError(404, "the server could not find the requested resource")
        name, subresource = [*rest[1:], None, None][:2]
        return Address(served, namespace, name, subresource)


def verb_of(method: str, path: str, query: Mapping[str, str]) -> str:
    """Kubernetes' word for a request."""
    if method == "GET":
        if query.get("watch") in ("true", "1"):
            return "watch"
        return "get" if _names_an_object(path) else "list"
    if method == "DELETE":
        return "delete" if _names_an_object(path) else "deletecollection"
    return _WRITES.get(method, method.lower())


def _names_an_object(path: str) -> bool:
    parts = [part for part in path.split("/") if part]
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return len(rest) > 1


_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def discovery(path: str, kinds: Iterable[ServedKind]) -> dict[str, Any] | None:
    """The answer to a question about kinds; None if the path is no such question, or nothing there is served."""
    match [part for part in path.split("/") if part]:
        case ["api"]:
            return {"kind": "APIVersions", "versions": sorted({kind.version for kind in kinds if not kind.group})}
        case ["apis"]:
            groups = _versions_by_group(kinds)
            listed = [_group(name, versions) for name, versions in groups.items()]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", name]:
            versions = _versions_by_group(kinds).get(name)
            return None if versions is None else {**_group(name, versions), "kind": "APIGroup", "apiVersion": "v1"}
        case ["api", version]:
            return _resources("", version, kinds)
        case ["apis", name, version]:
            return _resources(name, version, kinds)
    return None


def _versions_by_group(kinds: Iterable[ServedKind]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        versions = groups.setdefault(kind.group, []) if kind.group else []
        if kind.version not in versions:
            versions.append(kind.version)
    return groups


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(group: str, version: str, kinds: Iterable[ServedKind]) -> dict[str, Any] | None:
    served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not served:
        return None
    listed = [
        {"name": kind.plural, "singularName": "", "namespaced": kind.namespaced, "kind": kind.kind, "verbs": _VERBS}
        for kind in served
    ]
    group_version = served[0].api_version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}
