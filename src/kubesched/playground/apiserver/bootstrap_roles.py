"""The cluster roles and bindings that exist from the first start, as users of a cluster expect them.

The rules of `view`, `edit` and `admin` are empty here: a controller joins into them the rules of all cluster roles with
the label that they choose. ``bootstrap.py`` writes them.
"""

from __future__ import annotations

from kubesched.playground.apiserver.kinds.kind import Object

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
