"""What controllers watch, and where it lives. Kinds that only have owners are known by their metadata alone.

Next: `discovered` for how those are found, `cluster_view` for where they are kept.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.k8s.client.lease import LeaseSpec
from kubesched.k8s.client.list_watch.requests import ListOptions
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.model import core, resource, storage
from kubesched.k8s.model.meta import KubeObject, KubeStruct, LabelSelector
from kubesched.k8s.model.reported_pods import ReportedPod
from kubesched.playground.controllers import documents

LEASE_NAMESPACE = "kube-node-lease"


class NodeLease(KubeObject, frozen=True):
    """A node's sign of life."""

    spec: LeaseSpec = LeaseSpec()


class ServiceAccount(KubeObject, frozen=True):
    """Only that it exists."""


class ConfigMap(KubeObject, frozen=True):
    """What is published in namespaces."""

    data: dict[str, str] | None = None


class AggregationRule(KubeStruct, frozen=True):
    """Which other cluster roles a cluster role is made of."""

    cluster_role_selectors: tuple[LabelSelector, ...] | None = None


class ClusterRole(KubeObject, frozen=True):
    """Rules are kept as they are written: they are only copied."""

    rules: tuple[dict[str, Any], ...] | None = None
    aggregation_rule: AggregationRule | None = None


class ControllerRevision(KubeObject, frozen=True):
    """A template that a set has had."""

    revision: int = 0
    data: msgspec.Raw = msgspec.Raw(b"{}")


class NamespacePhase(KubeObject, frozen=True):
    """A namespace, and what stands in the way of its end."""

    spec: dict[str, object] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class ResourceQuota(KubeObject, frozen=True):
    """What a namespace may use, and uses."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class VolumeAttributesClass(KubeObject, frozen=True):
    """Only that it exists, and who holds it."""


class CustomResourceDefinition(KubeObject, frozen=True):
    """Only that it exists: kinds come and go with it."""


_DOCUMENTS = (
    Resource(documents.DeploymentDocument, "apps", "v1", "deployments", True, kind_name="Deployment"),
    Resource(documents.ReplicaSetDocument, "apps", "v1", "replicasets", True, kind_name="ReplicaSet"),
    Resource(documents.StatefulSetDocument, "apps", "v1", "statefulsets", True, kind_name="StatefulSet"),
    Resource(documents.DaemonSetDocument, "apps", "v1", "daemonsets", True, kind_name="DaemonSet"),
    Resource(
        documents.ReplicationControllerDocument,
        "",
        "v1",
        "replicationcontrollers",
        True,
        kind_name="ReplicationController",
    ),
    Resource(documents.JobDocument, "batch", "v1", "jobs", True, kind_name="Job"),
    Resource(documents.CronJobDocument, "batch", "v1", "cronjobs", True, kind_name="CronJob"),
)

_TYPED = (
    Resource(ReportedPod, "", "v1", "pods", True, kind_name="Pod"),
    Resource(core.Node, "", "v1", "nodes", False),
    Resource(NamespacePhase, "", "v1", "namespaces", False, kind_name="Namespace"),
    Resource(ControllerRevision, "apps", "v1", "controllerrevisions", True),
    Resource(ServiceAccount, "", "v1", "serviceaccounts", True),
    Resource(ConfigMap, "", "v1", "configmaps", True),
    Resource(ClusterRole, "rbac.authorization.k8s.io", "v1", "clusterroles", False),
    Resource(core.Service, "", "v1", "services", True),
    Resource(ResourceQuota, "", "v1", "resourcequotas", True),
    Resource(CustomResourceDefinition, "apiextensions.k8s.io", "v1", "customresourcedefinitions", False),
    Resource(core.PodDisruptionBudget, "policy", "v1", "poddisruptionbudgets", True),
    Resource(storage.PersistentVolume, "", "v1", "persistentvolumes", False),
    Resource(storage.PersistentVolumeClaim, "", "v1", "persistentvolumeclaims", True),
    Resource(storage.StorageClass, "storage.k8s.io", "v1", "storageclasses", False),
    Resource(storage.CSINode, "storage.k8s.io", "v1", "csinodes", False),
    Resource(VolumeAttributesClass, "storage.k8s.io", "v1", "volumeattributesclasses", False),
    Resource(resource.ResourceClaim, "resource.k8s.io", "v1", "resourceclaims", True, ("v1beta2",)),
    Resource(resource.ResourceSlice, "resource.k8s.io", "v1", "resourceslices", False, ("v1beta2",)),
    Resource(resource.DeviceTaintRule, "resource.k8s.io", "v1beta2", "devicetaintrules", False),
    Resource(resource.ResourceClaimTemplate, "resource.k8s.io", "v1", "resourceclaimtemplates", True, ("v1beta2",)),
    Resource(NodeLease, "coordination.k8s.io", "v1", "leases", True, kind_name="Lease"),
)

WATCHED: tuple[Resource, ...] = (*_DOCUMENTS, *_TYPED)

LIST_OPTIONS: dict[type[KubeObject], ListOptions] = {NodeLease: ListOptions(namespace=LEASE_NAMESPACE)}
"""Of leases only those of nodes; pods in whatever state."""

_BY_TYPE: dict[type[KubeObject], Resource] = {known.type: known for known in WATCHED} | {
    documents.TYPED[known.type]: known  # type: ignore[index]
    for known in _DOCUMENTS
}
_BY_TYPE[core.Pod] = _BY_TYPE[ReportedPod]


def home_of(type_: type[KubeObject]) -> Resource:
    """Where objects of this type live, whether typed or as documents."""
    return _BY_TYPE[type_]


def kind_name(type_: type[KubeObject]) -> str:
    home = _BY_TYPE.get(type_)
    return type_.__name__ if home is None else home.kind
