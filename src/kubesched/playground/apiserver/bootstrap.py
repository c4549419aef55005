"""What exists on a server from its first start.

Namespaces, priority classes, the roles and bindings that users of a cluster expect, the service that stands for the
server itself, and the config map by which components know who signs clients' certificates. Only what is missing is
written, so that a restart changes nothing.

The rules of `view`, `edit` and `admin` are empty here: a controller joins into them the rules of all cluster roles with
the label that they choose.

Read ``server.py`` for who calls this.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.kinds.traffic_kinds import FIRST_ADDRESS
from kubesched.playground.apiserver.patching.apply import record
from kubesched.playground.apiserver.served_resource import Object
from kubesched.playground.apiserver.storage.store import ObjectKey
from kubesched.playground.apiserver.verbs.request import Api

READ = ("get", "list", "watch")
_EVERY = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def rule(verbs: tuple[str, ...], groups: tuple[str, ...], *resources: str, names: tuple[str, ...] = ()) -> Object:
    """A rule on resources."""
    made: Object = {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}
    if names:
        made["resourceNames"] = list(names)
    return made


def _urls(verbs: tuple[str, ...], *urls: str) -> Object:
    return {"verbs": list(verbs), "nonResourceURLs": list(urls)}


CORE = ("",)
_PUBLIC_URLS = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY_URLS = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC_URLS)
CLUSTER_ROLES: dict[str, list[Object] | None] = {
    "cluster-admin": [rule(("*",), ("*",), "*"), _urls(("*",), "*")],
    "system:discovery": [_urls(("get",), *sorted(_DISCOVERY_URLS))],
    "system:public-info-viewer": [_urls(("get",), *_PUBLIC_URLS)],
    "system:basic-user": [
        rule(("create",), ("authorization.k8s.io",), "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
        rule(("create",), ("authentication.k8s.io",), "selfsubjectreviews"),
    ],
    "system:kube-scheduler": [
        rule(("create", "patch", "update"), ("", "events.k8s.io"), "events"),
        rule(("create",), ("coordination.k8s.io",), "leases"),
        rule(("get", "list", "update", "watch"), ("coordination.k8s.io",), "leases", names=("kube-scheduler",)),
        rule(_EVERY, ("coordination.k8s.io",), "leasecandidates"),
        rule(READ, CORE, "nodes"),
        rule(("delete", *READ), CORE, "pods"),
        rule(("create",), CORE, "bindings", "pods/binding"),
        rule(("patch", "update"), CORE, "pods/status"),
        rule(READ, CORE, "replicationcontrollers", "services"),
        rule(READ, ("apps", "extensions"), "replicasets"),
        rule(READ, ("apps",), "statefulsets"),
        rule(READ, ("policy",), "poddisruptionbudgets"),
        rule(READ, CORE, "persistentvolumeclaims", "persistentvolumes"),
        rule(("create",), ("authentication.k8s.io",), "tokenreviews"),
        rule(("create",), ("authorization.k8s.io",), "subjectaccessreviews"),
        rule(READ, ("storage.k8s.io",), "csinodes"),
        rule(READ, ("storage.k8s.io",), "volumeattachments"),
        rule(READ, CORE, "namespaces"),
        rule(READ, ("storage.k8s.io",), "csidrivers"),
        rule(READ, ("storage.k8s.io",), "csistoragecapacities"),
        rule(READ, ("resource.k8s.io",), "deviceclasses"),
        rule(("get", "list", "patch", "update", "watch"), ("resource.k8s.io",), "resourceclaims"),
        rule(("get", "list", "patch", "update", "watch"), ("resource.k8s.io",), "resourceclaims/status"),
        rule(("update",), CORE, "pods/finalizers"),
        rule(READ, ("resource.k8s.io",), "resourceslices"),
        rule(("create", "delete"), ("resource.k8s.io",), "resourceclaims"),
        rule(("patch", "update"), ("resource.k8s.io",), "resourceclaims/binding"),
    ],
    "system:volume-scheduler": [
        rule(("get", "list", "patch", "update", "watch"), CORE, "persistentvolumes"),
        rule(READ, ("storage.k8s.io",), "storageclasses"),
        rule(("get", "list", "patch", "update", "watch"), CORE, "persistentvolumeclaims"),
    ],
}

_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_TO_ADMIN, _TO_EDIT, _TO_VIEW = ({_AGGREGATE + name: "true"} for name in ("admin", "edit", "view"))
_ISSUER_URLS = (
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/",
    "/openid/v1/jwks",
    "/openid/v1/jwks/",
)
_HEALTH_URLS = tuple(path for name in ("/healthz", "/livez", "/readyz") for path in (name, f"{name}/*"))
_MONITORING_URLS = sorted(("/flagz", "/metrics", "/metrics/slis", "/statusz", *_HEALTH_URLS))
_EVENTS = ("", "events.k8s.io")
_WORKLOADS = ("deployments", "replicasets", "statefulsets")


def _with_parts(resource: str, *parts: str) -> tuple[str, ...]:
    return (resource, *(f"{resource}/{part}" for part in parts))


_SCALED = tuple(name for workload in _WORKLOADS for name in _with_parts(workload, "scale", "status"))
_OLD_SCALED = tuple(name for workload in _WORKLOADS[:2] for name in _with_parts(workload, "scale", "status"))
_OLD_WRITTEN = (
    "daemonsets",
    *_with_parts("deployments", "rollback", "scale"),
    "ingresses",
    "networkpolicies",
    *_with_parts("replicasets", "scale"),
    "replicationcontrollers/scale",
)
_INSIDE_PODS = ("pods/attach", "pods/exec", "pods/portforward", "pods/proxy")
_SIGNERS = ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving", "legacy-unknown")

CLUSTER_ROLES |= {
    "admin": None,
    "edit": None,
    "view": None,
    "system:aggregate-to-admin": [
        rule(("create",), ("authorization.k8s.io",), "localsubjectaccessreviews"),
        rule(_EVERY, ("rbac.authorization.k8s.io",), "rolebindings", "roles"),
    ],
    "system:aggregate-to-edit": [
        rule(READ, CORE, *_INSIDE_PODS, "secrets", "services/proxy"),
        rule(("impersonate",), CORE, "serviceaccounts"),
        rule(_WRITE, CORE, "pods", *_INSIDE_PODS),
        rule(("create",), CORE, "pods/eviction"),
        rule(
            _WRITE,
            CORE,
            "configmaps",
            "persistentvolumeclaims",
            *_with_parts("replicationcontrollers", "scale"),
            "secrets",
            "serviceaccounts",
            *_with_parts("services", "proxy"),
        ),
        rule(("create",), CORE, "serviceaccounts/token"),
        rule(_WRITE, _EVENTS, "events"),
        rule(
            _WRITE,
            ("apps",),
            "daemonsets",
            *_with_parts("deployments", "rollback", "scale"),
            *_with_parts("replicasets", "scale"),
            *_with_parts("statefulsets", "scale"),
        ),
        rule(_WRITE, ("autoscaling",), "horizontalpodautoscalers"),
        rule(_WRITE, ("batch",), "cronjobs", "jobs"),
        rule(_WRITE, ("extensions",), *_OLD_WRITTEN),
        rule(_WRITE, ("policy",), "poddisruptionbudgets"),
        rule(_WRITE, ("networking.k8s.io",), "ingresses", "networkpolicies"),
        rule(_EVERY, ("coordination.k8s.io",), "leases"),
        rule(_WRITE, ("resource.k8s.io",), "resourceclaims", "resourceclaimtemplates"),
    ],
    "system:aggregate-to-view": [
        rule(
            READ,
            CORE,
            "configmaps",
            "endpoints",
            *_with_parts("persistentvolumeclaims", "status"),
            "pods",
            *_with_parts("replicationcontrollers", "scale"),
            "serviceaccounts",
            *_with_parts("services", "status"),
        ),
        rule(
            READ,
            CORE,
            "bindings",
            "limitranges",
            "namespaces/status",
            "pods/log",
            "pods/status",
            "replicationcontrollers/status",
            *_with_parts("resourcequotas", "status"),
        ),
        rule(READ, CORE, "namespaces"),
        rule(READ, _EVENTS, "events"),
        rule(READ, ("discovery.k8s.io",), "endpointslices"),
        rule(READ, ("apps",), "controllerrevisions", *_with_parts("daemonsets", "status"), *_SCALED),
        rule(READ, ("autoscaling",), *_with_parts("horizontalpodautoscalers", "status")),
        rule(READ, ("batch",), *_with_parts("cronjobs", "status"), *_with_parts("jobs", "status")),
        rule(
            READ,
            ("extensions",),
            *_with_parts("daemonsets", "status"),
            *_OLD_SCALED[:3],
            *_with_parts("ingresses", "status"),
            "networkpolicies",
            *_OLD_SCALED[3:],
            "replicationcontrollers/scale",
        ),
        rule(READ, ("policy",), *_with_parts("poddisruptionbudgets", "status")),
        rule(READ, ("networking.k8s.io",), *_with_parts("ingresses", "status"), "networkpolicies"),
        rule(READ, ("resource.k8s.io",), *_with_parts("resourceclaims", "status"), "resourceclaimtemplates"),
    ],
    "system:auth-delegator": [
        rule(("create",), ("authentication.k8s.io",), "tokenreviews"),
        rule(("create",), ("authorization.k8s.io",), "subjectaccessreviews"),
    ],
    "system:monitoring": [_urls(("get",), *_MONITORING_URLS), rule(("get",), CORE, "nodes/metrics")],
    "system:service-account-issuer-discovery": [_urls(("get",), *_ISSUER_URLS)],
    **{
        f"system:certificates.k8s.io:{signer}-approver": [
            rule(("approve",), ("certificates.k8s.io",), "signers", names=(f"kubernetes.io/{signer}",))
        ]
        for signer in _SIGNERS
    },
}

AGGREGATED: dict[str, dict[str, str]] = {"admin": _TO_ADMIN, "edit": _TO_EDIT, "view": _TO_VIEW}
"""Cluster roles that are made of others: by which label."""

ROLE_LABELS: dict[str, dict[str, str]] = {
    "edit": _TO_ADMIN,
    "view": _TO_EDIT,
    "system:aggregate-to-admin": _TO_ADMIN,
    "system:aggregate-to-edit": _TO_EDIT,
    "system:aggregate-to-view": _TO_VIEW,
}
"""Who is part of whom."""

CLUSTER_ROLE_BINDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "cluster-admin": (("Group", "system:masters"),),
    "system:discovery": (("Group", "system:authenticated"),),
    "system:public-info-viewer": (("Group", "system:authenticated"), ("Group", "system:unauthenticated")),
    "system:basic-user": (("Group", "system:authenticated"),),
    "system:kube-scheduler": (("User", "system:kube-scheduler"),),
    "system:volume-scheduler": (("User", "system:kube-scheduler"),),
    "system:monitoring": (("Group", "system:monitoring"),),
    "system:service-account-issuer-discovery": (("Group", "system:serviceaccounts"),),
}


_RBAC_METADATA = {
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
}
_MANAGER = "kube-apiserver"
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_RBAC = "rbac.authorization.k8s.io"
_PRIORITY_CLASSES = (
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
)


_CLIENT_CA = "extension-apiserver-authentication"
_CLIENT_CA_READER = f"{_CLIENT_CA}-reader"
_FRONT_PROXY = {
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-username-headers": '["X-Remote-User"]',
}


def ensure(api: Api, client_ca_pem: bytes) -> None:
    """Writes what is missing."""
    for name in _NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name}
        spec = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        _put(api, "namespaces", name, {"labels": labels}, spec)
    for name, value, description in _PRIORITY_CLASSES:
        body: dict[str, Any] = {"value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority"}
        _put(api, "priorityclasses.scheduling.k8s.io", name, {"generation": 1}, body)
    for name, rules in CLUSTER_ROLES.items():
        labels = {**_RBAC_METADATA["labels"], **ROLE_LABELS.get(name, {})}
        body = {"rules": rules}
        if name in AGGREGATED:
            body["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": AGGREGATED[name]}]}
        _put(api, f"clusterroles.{_RBAC}", name, {**_RBAC_METADATA, "labels": labels}, body)
    for role, subjects in CLUSTER_ROLE_BINDINGS.items():
        listed = [{"kind": kind, "apiGroup": _RBAC, "name": subject} for kind, subject in subjects]
        reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}
        _put(api, f"clusterrolebindings.{_RBAC}", role, _RBAC_METADATA, {"subjects": listed, "roleRef": reference})
    _ensure_own_service(api)
    _ensure_client_ca(api, client_ca_pem)


def _ensure_own_service(api: Api) -> None:
    """`kubectl get services` shows it on every cluster. Nothing runs here that could ask its address."""
    spec: Object = {
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        "clusterIP": FIRST_ADDRESS,
        "clusterIPs": [FIRST_ADDRESS],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    labels = {"component": "apiserver", "provider": "kubernetes"}
    body: Object = {"spec": spec, "status": {"loadBalancer": {}}}
    _put(api, "services", "kubernetes", {"labels": labels}, body, "default")


def _ensure_client_ca(api: Api, client_ca_pem: bytes) -> None:
    """Schedulers and other components look here before they serve anybody."""
    where, authority = "kube-system", client_ca_pem.decode()
    data = {"client-ca-file": authority, "requestheader-client-ca-file": authority, **_FRONT_PROXY}
    _put(api, "configmaps", _CLIENT_CA, {}, {"data": data}, where)
    rules = [rule(READ, CORE, "configmaps", names=(_CLIENT_CA,))]
    _put(api, f"roles.{_RBAC}", _CLIENT_CA_READER, _RBAC_METADATA, {"rules": rules}, where)
    users = ("system:kube-controller-manager", "system:kube-scheduler")
    subjects = [{"kind": "User", "apiGroup": _RBAC, "name": user} for user in users]
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": _CLIENT_CA_READER}
    body: Object = {"subjects": subjects, "roleRef": reference}
    _put(api, f"rolebindings.{_RBAC}", f"system::{_CLIENT_CA_READER}", _RBAC_METADATA, body, where)


def _put(api: Api, group_resource: str, name: str, metadata: Object, body: Object, namespace: str = "") -> None:
    resource = api.resource_of(group_resource)
    key = ObjectKey(namespace, name)
    if resource is None or api.store.get(group_resource, key) is not None:
        return
    given = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": api.new_uid(),
        "creationTimestamp": api.now(),
        **metadata,
    }
    # the finalizer and the phase of namespaces are admission's, all else is owned by the component that sends it
    sent = {"metadata": given, **{name: part for name, part in body.items() if name not in ("spec", "status")}}
    record(sent, None, resource, _MANAGER, "", api.now())
    api.store.put(group_resource, key, {"metadata": given, **body}, resource.selectable_fields, 0)
