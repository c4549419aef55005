"""Every built-in kind that is served, by its names, and the rules of each, which are in the module of its area.

``ALL_KINDS`` has the order of the real server's discovery, ``kinds_of`` what an emulated version has in their place.
Kinds without an entry in ``RULES`` are stored as their schema says, with nothing but metadata checked. Custom resources
come from ``custom.py``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kubesched.playground.apiserver.kinds import (
    access_kinds,
    admission_kinds,
    autoscalers,
    batch,
    configuration,
    custom_definitions,
    device_kinds,
    events,
    next_pod_groups,
    nodes,
    quota_kinds,
    scheduling_kinds,
    storage_kinds,
    traffic_kinds,
    workloads,
)
from kubesched.playground.apiserver.kinds.pods.rules import POD
from kubesched.playground.apiserver.kinds.serving import DEFAULT_COLUMNS, SCALE, STATUS, KindRules, serve
from kubesched.playground.apiserver.served_resource import ServedResource

_ADMISSION_API = "admissionregistration.k8s.io/v1"
_RBAC_API = "rbac.authorization.k8s.io/v1"
_STORAGE_API = "storage.k8s.io/v1"
_ALPHA_API = "scheduling.k8s.io/v1alpha2"
_NEXT_API = "scheduling.k8s.io/v1beta1"
_NEXT_ALPHA_API = "scheduling.k8s.io/v1alpha3"

RULES: dict[tuple[str, str], KindRules] = {
    ("v1", "Pod"): POD,
    ("v1", "Node"): nodes.NODE,
    ("v1", "Namespace"): configuration.NAMESPACE,
    ("v1", "ConfigMap"): configuration.CONFIG_MAP,
    ("v1", "Secret"): configuration.SECRET,
    ("v1", "Service"): traffic_kinds.SERVICE,
    ("v1", "Endpoints"): traffic_kinds.ENDPOINTS,
    ("v1", "Event"): events.CORE_EVENT,
    ("v1", "LimitRange"): quota_kinds.LIMIT_RANGE,
    ("v1", "PersistentVolume"): storage_kinds.VOLUME,
    ("v1", "PersistentVolumeClaim"): storage_kinds.CLAIM,
    ("v1", "PodTemplate"): workloads.POD_TEMPLATE,
    ("v1", "ReplicationController"): workloads.REPLICATION_CONTROLLER,
    ("v1", "ResourceQuota"): quota_kinds.QUOTA,
    ("v1", "ServiceAccount"): access_kinds.SERVICE_ACCOUNT,
    (_ADMISSION_API, "MutatingAdmissionPolicy"): admission_kinds.MUTATING_POLICY,
    (_ADMISSION_API, "MutatingAdmissionPolicyBinding"): admission_kinds.MUTATING_BINDING,
    (_ADMISSION_API, "ValidatingAdmissionPolicy"): admission_kinds.VALIDATING_POLICY,
    (_ADMISSION_API, "ValidatingAdmissionPolicyBinding"): admission_kinds.VALIDATING_BINDING,
    ("apps/v1", "ControllerRevision"): workloads.CONTROLLER_REVISION,
    ("apps/v1", "DaemonSet"): workloads.DAEMON_SET,
    ("apps/v1", "Deployment"): workloads.DEPLOYMENT,
    ("apps/v1", "ReplicaSet"): workloads.REPLICA_SET,
    ("apps/v1", "StatefulSet"): workloads.STATEFUL_SET,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): autoscalers.OLD_AUTOSCALER,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): autoscalers.AUTOSCALER,
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): custom_definitions.DEFINITION,
    ("batch/v1", "CronJob"): batch.CRON_JOB,
    ("batch/v1", "Job"): batch.JOB,
    ("certificates.k8s.io/v1", "CertificateSigningRequest"): access_kinds.REQUEST,
    ("coordination.k8s.io/v1", "Lease"): configuration.LEASE,
    ("discovery.k8s.io/v1", "EndpointSlice"): traffic_kinds.ENDPOINT_SLICE,
    ("events.k8s.io/v1", "Event"): events.NEW_EVENT,
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"): configuration.FLOW_SCHEMA,
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"): configuration.PRIORITY_LEVEL,
    (_ADMISSION_API, "MutatingWebhookConfiguration"): configuration.MUTATING_WEBHOOKS,
    (_ADMISSION_API, "ValidatingWebhookConfiguration"): configuration.VALIDATING_WEBHOOKS,
    ("networking.k8s.io/v1", "IPAddress"): configuration.ADDRESS,
    ("networking.k8s.io/v1", "ServiceCIDR"): configuration.ADDRESS_RANGE,
    ("networking.k8s.io/v1", "Ingress"): traffic_kinds.INGRESS,
    ("networking.k8s.io/v1", "IngressClass"): traffic_kinds.INGRESS_CLASS,
    ("networking.k8s.io/v1", "NetworkPolicy"): traffic_kinds.NETWORK_POLICY,
    ("node.k8s.io/v1", "RuntimeClass"): scheduling_kinds.RUNTIME_CLASS,
    ("policy/v1", "PodDisruptionBudget"): scheduling_kinds.BUDGET,
    (_RBAC_API, "ClusterRole"): access_kinds.CLUSTER_ROLE,
    (_RBAC_API, "ClusterRoleBinding"): access_kinds.CLUSTER_ROLE_BINDING,
    (_RBAC_API, "Role"): access_kinds.ROLE,
    (_RBAC_API, "RoleBinding"): access_kinds.ROLE_BINDING,
    ("resource.k8s.io/v1", "DeviceClass"): device_kinds.DEVICE_CLASS,
    ("resource.k8s.io/v1", "ResourceClaim"): device_kinds.RESOURCE_CLAIM,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): device_kinds.RESOURCE_CLAIM_TEMPLATE,
    ("resource.k8s.io/v1", "ResourceSlice"): device_kinds.RESOURCE_SLICE,
    ("resource.k8s.io/v1beta2", "DeviceTaintRule"): device_kinds.DEVICE_TAINT_RULE,
    ("scheduling.k8s.io/v1", "PriorityClass"): scheduling_kinds.PRIORITY_CLASS,
    (_ALPHA_API, "PodGroup"): scheduling_kinds.POD_GROUP,
    (_ALPHA_API, "Workload"): scheduling_kinds.WORKLOAD,
    (_NEXT_API, "PodGroup"): next_pod_groups.POD_GROUP,
    (_NEXT_API, "Workload"): next_pod_groups.WORKLOAD,
    (_NEXT_ALPHA_API, "PodGroup"): next_pod_groups.POD_GROUP,
    (_NEXT_ALPHA_API, "Workload"): next_pod_groups.WORKLOAD,
    (_NEXT_ALPHA_API, "CompositePodGroup"): next_pod_groups.COMPOSITE_POD_GROUP,
    (_STORAGE_API, "CSIDriver"): storage_kinds.CSI_DRIVER,
    (_STORAGE_API, "CSINode"): storage_kinds.CSI_NODE,
    (_STORAGE_API, "CSIStorageCapacity"): storage_kinds.CSI_CAPACITY,
    (_STORAGE_API, "StorageClass"): storage_kinds.STORAGE_CLASS,
    (_STORAGE_API, "VolumeAttachment"): storage_kinds.VOLUME_ATTACHMENT,
    (_STORAGE_API, "VolumeAttributesClass"): storage_kinds.ATTRIBUTES_CLASS,
}

WITHOUT_OWN_RULES = KindRules(columns=DEFAULT_COLUMNS)


_POD_SUBRESOURCES = frozenset(
    ("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize", "status")
)
_OLD_STATUS = "v1 ComponentStatus is deprecated in v1.19+"
_OLD_POINTS = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)
_CREATE_ONLY = ("create",)
_READ_ONLY = ("get", "list")
_NO_COLLECTION_DELETE = ("create", "delete", "get", "list", "patch", "update", "watch")
_STRICT = {"unconditional_update": False}
_UPSERT = {"create_on_update": True}
_COUNTED = {"tracks_generation": True}
_ONLY_STATUS = {"subresources": STATUS, "status_keeps": ("labels", "annotations", "finalizers")}
_NEW_EVENTS = {"to_stored": events.to_core, "from_stored": events.from_core}


def _namespaced(group_version: str, kind: str, plural: str, **names: Any) -> ServedResource:
    return _served(group_version, kind, plural, True, names)


def _of_cluster(group_version: str, kind: str, plural: str, **names: Any) -> ServedResource:
    return _served(group_version, kind, plural, False, names)


def _served(group_version: str, kind: str, plural: str, namespaced: bool, names: dict[str, Any]) -> ServedResource:
    if isinstance(short := names.pop("short", ()), str):
        short = (short,)
    rules = RULES.get((group_version, kind), WITHOUT_OWN_RULES)
    return serve(group_version, kind, plural, namespaced=namespaced, rules=rules, short_names=short, **names)


_CORE = (
    _namespaced("v1", "Binding", "bindings", verbs=_CREATE_ONLY),
    _of_cluster("v1", "ComponentStatus", "componentstatuses", short="cs", verbs=_READ_ONLY, deprecation=_OLD_STATUS),
    _namespaced("v1", "ConfigMap", "configmaps", short="cm"),
    _namespaced("v1", "Endpoints", "endpoints", short="ep", singular="endpoints", deprecation=_OLD_POINTS, **_UPSERT),
    _namespaced("v1", "Event", "events", short="ev", **_UPSERT),
    _namespaced("v1", "LimitRange", "limitranges", short="limits", **_UPSERT),
    _of_cluster(
        "v1", "Namespace", "namespaces", short="ns", subresources=STATUS | {"finalize"}, verbs=_NO_COLLECTION_DELETE
    ),
    _of_cluster("v1", "Node", "nodes", short="no", subresources=STATUS | {"proxy"}),
    _namespaced("v1", "PersistentVolumeClaim", "persistentvolumeclaims", short="pvc", subresources=STATUS),
    _of_cluster("v1", "PersistentVolume", "persistentvolumes", short="pv", subresources=STATUS),
    _namespaced("v1", "Pod", "pods", short="po", categories=_ALL, subresources=_POD_SUBRESOURCES, **_COUNTED),
    _namespaced("v1", "PodTemplate", "podtemplates", **_COUNTED),
    _namespaced(
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        short="rc",
        categories=_ALL,
        subresources=SCALE,
        **_COUNTED,
    ),
    _namespaced("v1", "ResourceQuota", "resourcequotas", short="quota", subresources=STATUS),
    _namespaced("v1", "Secret", "secrets"),
    _namespaced("v1", "ServiceAccount", "serviceaccounts", short="sa", subresources=frozenset({"token"})),
    _namespaced("v1", "Service", "services", short="svc", categories=_ALL, subresources=STATUS | {"proxy"}, **_UPSERT),
)

_APPS = tuple(
    _namespaced(
        "apps/v1",
        kind,
        kind.lower() + "s",
        short=short,
        categories=_ALL,
        subresources=subresources,
        counted_metadata=counted,
        status_keeps=kept,
        **_COUNTED,
    )
    for kind, short, subresources, counted, kept in (
        ("DaemonSet", "ds", STATUS, (), ()),
        ("Deployment", "deploy", SCALE, ("annotations",), ("labels",)),
        ("ReplicaSet", "rs", SCALE, (), ()),
        ("StatefulSet", "sts", SCALE, (), ()),
    )
)

_REVIEWS = (
    _of_cluster("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", verbs=_CREATE_ONLY),
    _of_cluster("authentication.k8s.io/v1", "TokenReview", "tokenreviews", verbs=_CREATE_ONLY),
    _namespaced("authorization.k8s.io/v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=_CREATE_ONLY),
    _of_cluster("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", verbs=_CREATE_ONLY),
    _of_cluster("authorization.k8s.io/v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", verbs=_CREATE_ONLY),
    _of_cluster("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", verbs=_CREATE_ONLY),
)

_HPA = {"short": "hpa", "categories": _ALL, "subresources": STATUS}
_AUTOSCALING = (
    _namespaced("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", **_HPA),
    _namespaced(
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        to_stored=autoscalers.to_v2,
        from_stored=autoscalers.from_v2,
        **_HPA,
    ),
)

_OF_JOB = {"categories": _ALL, "subresources": STATUS, **_COUNTED}
_JOB = _namespaced("batch/v1", "Job", "jobs", **_OF_JOB)
_BATCH = (
    _namespaced("batch/v1", "CronJob", "cronjobs", short="cj", categories=_ALL, subresources=STATUS, **_COUNTED),
    _JOB,
)

_NETWORKING = (
    _of_cluster("networking.k8s.io/v1", "IngressClass", "ingressclasses", **_COUNTED),
    _namespaced("networking.k8s.io/v1", "Ingress", "ingresses", short="ing", subresources=STATUS, **_COUNTED),
    _of_cluster("networking.k8s.io/v1", "IPAddress", "ipaddresses", short="ip"),
    _namespaced("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", short="netpol", **_COUNTED),
    _of_cluster("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs", subresources=STATUS),
)

_RBAC = (
    _of_cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", **_UPSERT),
    _of_cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", **_UPSERT),
    _namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", **_UPSERT),
    _namespaced("rbac.authorization.k8s.io/v1", "Role", "roles", **_UPSERT),
)

_STORAGE = (
    _of_cluster("storage.k8s.io/v1", "CSIDriver", "csidrivers", **_STRICT),
    _of_cluster("storage.k8s.io/v1", "CSINode", "csinodes", **_STRICT),
    _namespaced("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities", **_STRICT),
    _of_cluster("storage.k8s.io/v1", "StorageClass", "storageclasses", short="sc"),
    _of_cluster("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", **_ONLY_STATUS, **_STRICT),
    _of_cluster("storage.k8s.io/v1", "VolumeAttributesClass", "volumeattributesclasses", short="vac"),
)

_ADMISSION_KINDS = (
    ("MutatingAdmissionPolicy", "mutatingadmissionpolicies", frozenset[str]()),
    ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", frozenset[str]()),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", frozenset[str]()),
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", STATUS),
    ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", frozenset[str]()),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", frozenset[str]()),
)
_ADMISSION = tuple(
    _of_cluster(
        "admissionregistration.k8s.io/v1",
        kind,
        plural,
        categories=_EXTENSIONS,
        subresources=subresources,
        **_STRICT,
        **_COUNTED,
    )
    for kind, plural, subresources in _ADMISSION_KINDS
)

_PRIORITY_CLASS = _of_cluster("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", short="pc")
_SCHEDULING = (
    _PRIORITY_CLASS,
    _namespaced(_ALPHA_API, "PodGroup", "podgroups", **_ONLY_STATUS),
    _namespaced(_ALPHA_API, "Workload", "workloads"),
)
_GROUPS_FROM_ALPHA = {"from_stored": next_pod_groups.group_from_alpha, **_ONLY_STATUS, **_STRICT}
_WORKLOADS_FROM_ALPHA = {"from_stored": next_pod_groups.workload_from_alpha, **_STRICT}
_NEXT_SCHEDULING = (
    _PRIORITY_CLASS,
    _namespaced(_NEXT_API, "PodGroup", "podgroups", **_GROUPS_FROM_ALPHA),
    _namespaced(_NEXT_API, "Workload", "workloads", **_WORKLOADS_FROM_ALPHA),
    _namespaced(_NEXT_ALPHA_API, "CompositePodGroup", "compositepodgroups", **_ONLY_STATUS, **_STRICT),
    _namespaced(
        _NEXT_ALPHA_API, "PodGroup", "podgroups", stored_as="podgroups.scheduling.k8s.io", **_GROUPS_FROM_ALPHA
    ),
    _namespaced(
        _NEXT_ALPHA_API, "Workload", "workloads", stored_as="workloads.scheduling.k8s.io", **_WORKLOADS_FROM_ALPHA
    ),
)

_RESOURCE = (
    _of_cluster("resource.k8s.io/v1", "DeviceClass", "deviceclasses", **_COUNTED),
    _namespaced("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", **_ONLY_STATUS),
    _namespaced("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    _of_cluster("resource.k8s.io/v1", "ResourceSlice", "resourceslices", **_COUNTED),
    _of_cluster("resource.k8s.io/v1beta2", "DeviceTaintRule", "devicetaintrules", **_ONLY_STATUS, **_COUNTED),
)

_FLOWCONTROL = tuple(
    _of_cluster("flowcontrol.apiserver.k8s.io/v1", kind, kind.lower() + "s", subresources=STATUS, **_COUNTED)
    for kind in ("FlowSchema", "PriorityLevelConfiguration")
)

ALL_KINDS: tuple[ServedResource, ...] = (
    *_CORE,
    _of_cluster("apiregistration.k8s.io/v1", "APIService", "apiservices", categories=_EXTENSIONS, subresources=STATUS),
    _namespaced("apps/v1", "ControllerRevision", "controllerrevisions"),
    *_APPS,
    _namespaced("events.k8s.io/v1", "Event", "events", short="ev", stored_as="events", **_NEW_EVENTS, **_UPSERT),
    *_REVIEWS,
    *_AUTOSCALING,
    *_BATCH,
    _of_cluster(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        short="csr",
        subresources=STATUS | {"approval"},
    ),
    *_NETWORKING,
    _namespaced(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        short="pdb",
        subresources=STATUS,
        **_STRICT,
        **_COUNTED,
    ),
    *_RBAC,
    *_STORAGE,
    *_ADMISSION,
    _of_cluster(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        short=("crd", "crds"),
        categories=_EXTENSIONS,
        subresources=STATUS,
        **_STRICT,
        **_COUNTED,
    ),
    *_SCHEDULING,
    _namespaced("coordination.k8s.io/v1", "Lease", "leases", **_STRICT, **_UPSERT),
    _of_cluster("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", **_STRICT, **_UPSERT),
    _namespaced("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", counted_metadata=("labels",), **_COUNTED),
    *_RESOURCE,
    *_FLOWCONTROL,
)


TODAY, NEXT = "1.36", "1.37"
VERSIONS = (TODAY, NEXT)
"""The versions of Kubernetes whose kinds can be served."""

_NEXT_JOB = serve("batch/v1", "Job", "jobs", namespaced=True, rules=batch.NEXT_JOB, **_OF_JOB)


@lru_cache(maxsize=len(VERSIONS))
def kinds_of(version: str) -> tuple[ServedResource, ...]:
    """What a server of this version serves."""
    if version != NEXT:
        return ALL_KINDS
    changed = {_SCHEDULING[0]: _NEXT_SCHEDULING, _JOB: (_NEXT_JOB,)} | dict.fromkeys(_SCHEDULING[1:], ())
    return tuple(kind for one in ALL_KINDS for kind in changed.get(one, (one,)))


EVERY_KIND = (*_NEXT_SCHEDULING, *ALL_KINDS)
"""Of all versions of Kubernetes."""


@lru_cache(maxsize=1)
def _by_plural() -> dict[tuple[str, str, str], ServedResource]:
    return {(one.group, one.version, one.plural): one for one in EVERY_KIND}


def find(group: str, version: str, plural: str) -> ServedResource | None:
    """A built-in kind by the names of its path, of whichever version of Kubernetes."""
    return _by_plural().get((group, version, plural))
