"""What controllers watch, where it lives, and which kinds a server has besides, by its discovery.

Who looks after all kinds (garbage, namespaces) asks again now and then, and when a custom resource definition changes:
kinds come and go with those. Kinds that only have owners are known by their metadata alone.

Next: `cluster_view` for where objects are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.lease import LeaseSpec
from kubesched.k8s.client.list_watch.exchange import ListOptions
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.client.resources import POD_GROUPS, Resource
from kubesched.k8s.model import core, resource, scheduling, storage
from kubesched.k8s.model.meta import KubeObject, KubeStruct, LabelSelector
from kubesched.k8s.model.reported_pods import ReportedPod
from kubesched.playground.controllers import whole_objects

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


class QuotaDocument(KubeObject, frozen=True):
    """What a namespace may use, and uses."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class VolumeAttributesClass(KubeObject, frozen=True):
    """Only that it exists, and who holds it."""


class CustomResourceDefinition(KubeObject, frozen=True):
    """Only that it exists: kinds come and go with it."""


_DOCUMENTS = (
    Resource(whole_objects.DeploymentDocument, "apps", "v1", "deployments", True, kind_name="Deployment"),
    Resource(whole_objects.ReplicaSetDocument, "apps", "v1", "replicasets", True, kind_name="ReplicaSet"),
    Resource(whole_objects.StatefulSetDocument, "apps", "v1", "statefulsets", True, kind_name="StatefulSet"),
    Resource(whole_objects.DaemonSetDocument, "apps", "v1", "daemonsets", True, kind_name="DaemonSet"),
    Resource(
        whole_objects.ReplicationControllerDocument,
        "",
        "v1",
        "replicationcontrollers",
        True,
        kind_name="ReplicationController",
    ),
    Resource(whole_objects.JobDocument, "batch", "v1", "jobs", True, kind_name="Job"),
    Resource(whole_objects.CronJobDocument, "batch", "v1", "cronjobs", True, kind_name="CronJob"),
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
    Resource(QuotaDocument, "", "v1", "resourcequotas", True, kind_name="ResourceQuota"),
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
    POD_GROUPS,
    Resource(scheduling.Workload, POD_GROUPS.group, POD_GROUPS.version, "workloads", True),
    Resource(NodeLease, "coordination.k8s.io", "v1", "leases", True, kind_name="Lease"),
)

WATCHED: tuple[Resource, ...] = (*_DOCUMENTS, *_TYPED)

LIST_OPTIONS: dict[type[KubeObject], ListOptions] = {NodeLease: ListOptions(namespace=LEASE_NAMESPACE)}
"""Of leases only those of nodes; pods in whatever state."""

_BY_TYPE: dict[type[KubeObject], Resource] = {known.type: known for known in WATCHED} | {
    whole_objects.TYPED[known.type]: known  # type: ignore[index]
    for known in _DOCUMENTS
}
_BY_TYPE |= {core.Pod: _BY_TYPE[ReportedPod]}


class Homes:
    """Where objects of a type live, whether typed or as documents. Pod groups and workloads moved in v1.37:
    `groups_version` is the version that the server has of them."""

    def __init__(self, groups_version: str = scheduling.GROUP_VERSION) -> None:
        moved = {
            type_: replace(_BY_TYPE[type_], version=groups_version)
            for type_ in (scheduling.PodGroup, scheduling.Workload)
        }
        self._by_type = _BY_TYPE | moved
        self.watched = tuple(self._by_type[known.type] for known in WATCHED)

    def __call__(self, type_: type[KubeObject]) -> Resource:
        return self._by_type[type_]


home_of = Homes()
"""In a server of today."""


def kind_name(type_: type[KubeObject]) -> str:
    home = _BY_TYPE.get(type_)
    return type_.__name__ if home is None else home.kind


REFRESH_S = 30.0


@dataclass(frozen=True, slots=True)
class DiscoveredKind:
    """`home.type` holds metadata only, unless controllers watch the kind anyway."""

    home: Resource
    kind: str
    verbs: frozenset[str]


class _ApiResource(msgspec.Struct, gc=False):
    name: str
    kind: str = ""
    namespaced: bool = False
    verbs: list[str] = []


class _ResourceList(msgspec.Struct, gc=False):
    resources: list[_ApiResource] = []


class _GroupVersion(msgspec.Struct, rename="camel", gc=False):
    group_version: str
    version: str


class _Group(msgspec.Struct, rename="camel", gc=False):
    name: str
    preferred_version: _GroupVersion
    versions: list[_GroupVersion] = []

    def in_order(self) -> list[_GroupVersion]:
        """The preferred version, then the others, which may have kinds that it lacks."""
        others = [one for one in self.versions if one.version != self.preferred_version.version]
        return [self.preferred_version, *others]


class _GroupList(msgspec.Struct, gc=False):
    groups: list[_Group] = []


class DiscoveredKinds:
    def __init__(self, api: Requester, now_s: Callable[[], float]) -> None:
        self._api = api
        self._now_s = now_s
        self._asked_at_s = float("-inf")
        self._types: dict[tuple[str, str], type[KubeObject]] = {
            (known.group, known.plural): known.type for known in WATCHED
        }
        self._kinds: dict[tuple[str, str], DiscoveredKind] = {}
        self._served: set[tuple[str, str]] = set()
        """Kinds with each of their versions."""
        self._asking = asyncio.Lock()

    def forget(self) -> None:
        """Kinds have come or gone: the server is asked again."""
        self._asked_at_s = float("-inf")

    async def kinds(self) -> list[DiscoveredKind]:
        """Those that have objects of their own, each in the preferred version of its group if that has it."""
        async with self._asking:
            if self._now_s() - self._asked_at_s > REFRESH_S:
                self._asked_at_s = self._now_s()  # what changes while we ask is asked for again
                try:
                    found = await self._ask()
                    self._kinds = _first_of_each(found)
                    self._served = {(one.home.api_version, one.kind) for one in found}
                except BaseException:
                    self.forget()
                    raise
        return list(self._kinds.values())

    async def find(self, api_version: str, kind: str) -> DiscoveredKind | None:
        """By what an owner reference or a manifest says: in that version, if the server has it."""
        group, _, version = api_version.rpartition("/")
        known = next((one for one in await self.kinds() if one.kind == kind and one.home.group == group), None)
        if known is None or (api_version, kind) not in self._served:
            return known
        return replace(known, home=replace(known.home, version=version))

    async def _ask(self) -> list[DiscoveredKind]:
        groups = msgspec.json.decode(await self._api.request("GET", "/apis"), type=_GroupList).groups
        versions = [("", "v1", "/api/v1")]
        versions += [
            (group.name, one.version, f"/apis/{one.group_version}") for group in groups for one in group.in_order()
        ]
        found: list[DiscoveredKind] = []
        for group_name, version, path in versions:
            try:
                answer = await self._api.request("GET", path)
            except ApiError as error:
                if error.is_not_found or error.status >= 500:
                    continue  # an aggregated API whose server is away
                raise
            resources = msgspec.json.decode(answer, type=_ResourceList).resources
            found.extend(self._of_group(group_name, version, resources))
        return found

    def _of_group(self, group: str, version: str, resources: list[_ApiResource]) -> Iterator[DiscoveredKind]:
        for known in resources:
            if "/" in known.name or not {"list", "delete"} <= set(known.verbs):
                continue
            if (group, known.name) not in self._types:
                made = msgspec.defstruct(f"{known.kind}Metadata", [], bases=(KubeObject,), frozen=True)
                self._types[group, known.name] = cast("type[KubeObject]", made)
            home = Resource(
                self._types[group, known.name], group, version, known.name, known.namespaced, kind_name=known.kind
            )
            yield DiscoveredKind(home, known.kind, frozenset(known.verbs))


def _first_of_each(found: Iterable[DiscoveredKind]) -> dict[tuple[str, str], DiscoveredKind]:
    """Of a kind that several versions have, the version that was asked first."""
    kinds: dict[tuple[str, str], DiscoveredKind] = {}
    for one in found:
        kinds.setdefault((one.home.group, one.home.plural), one)
    return kinds
