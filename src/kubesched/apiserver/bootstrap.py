"""What exists on a server from its first start: namespaces, priority classes, the roles that users of a cluster expect,
the service that stands for the server itself, and the config map by which components know who signs clients'
certificates.

Only what is missing is written, so that a restart changes nothing. Read ``server.py`` for who calls this.
"""

from __future__ import annotations

from typing import Any

from kubesched.apiserver.api import Api
from kubesched.apiserver.kinds.kind import Object
from kubesched.apiserver.kinds.services import FIRST_ADDRESS
from kubesched.apiserver.patching.apply import record
from kubesched.apiserver.storage.store import ObjectKey

_RBAC_METADATA = {
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
}
_MANAGER = "kube-apiserver"
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_RBAC = "rbac.authorization.k8s.io"
_READ = ("get", "list", "watch")
_EVERY = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def _rule(verbs: tuple[str, ...], groups: tuple[str, ...], *resources: str, names: tuple[str, ...] = ()) -> Object:
    rule: Object = {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}
    if names:
        rule["resourceNames"] = list(names)
    return rule


def _urls(verbs: tuple[str, ...], *urls: str) -> Object:
    return {"verbs": list(verbs), "nonResourceURLs": list(urls)}


_CORE = ("",)
_PUBLIC_URLS = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY_URLS = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC_URLS)
_ROLES: dict[str, list[Object]] = {
    "cluster-admin": [_rule(("*",), ("*",), "*"), _urls(("*",), "*")],
    "system:discovery": [_urls(("get",), *sorted(_DISCOVERY_URLS))],
    "system:public-info-viewer": [_urls(("get",), *_PUBLIC_URLS)],
    "system:basic-user": [
        _rule(("create",), ("authorization.k8s.io",), "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
        _rule(("create",), ("authentication.k8s.io",), "selfsubjectreviews"),
    ],
    "system:kube-scheduler": [
        _rule(("create", "patch", "update"), ("", "events.k8s.io"), "events"),
        _rule(("create",), ("coordination.k8s.io",), "leases"),
        _rule(("get", "list", "update", "watch"), ("coordination.k8s.io",), "leases", names=("kube-scheduler",)),
        _rule(_EVERY, ("coordination.k8s.io",), "leasecandidates"),
        _rule(_READ, _CORE, "nodes"),
        _rule(("delete", *_READ), _CORE, "pods"),
        _rule(("create",), _CORE, "bindings", "pods/binding"),
        _rule(("patch", "update"), _CORE, "pods/status"),
        _rule(_READ, _CORE, "replicationcontrollers", "services"),
        _rule(_READ, ("apps", "extensions"), "replicasets"),
        _rule(_READ, ("apps",), "statefulsets"),
        _rule(_READ, ("policy",), "poddisruptionbudgets"),
        _rule(_READ, _CORE, "persistentvolumeclaims", "persistentvolumes"),
        _rule(("create",), ("authentication.k8s.io",), "tokenreviews"),
        _rule(("create",), ("authorization.k8s.io",), "subjectaccessreviews"),
        _rule(_READ, ("storage.k8s.io",), "csinodes"),
        _rule(_READ, ("storage.k8s.io",), "volumeattachments"),
        _rule(_READ, _CORE, "namespaces"),
        _rule(_READ, ("storage.k8s.io",), "csidrivers"),
        _rule(_READ, ("storage.k8s.io",), "csistoragecapacities"),
        _rule(_READ, ("resource.k8s.io",), "deviceclasses"),
        _rule(("get", "list", "patch", "update", "watch"), ("resource.k8s.io",), "resourceclaims"),
        _rule(("get", "list", "patch", "update", "watch"), ("resource.k8s.io",), "resourceclaims/status"),
        _rule(("update",), _CORE, "pods/finalizers"),
        _rule(_READ, ("resource.k8s.io",), "resourceslices"),
        _rule(("create", "delete"), ("resource.k8s.io",), "resourceclaims"),
        _rule(("patch", "update"), ("resource.k8s.io",), "resourceclaims/binding"),
    ],
    "system:volume-scheduler": [
        _rule(("get", "list", "patch", "update", "watch"), _CORE, "persistentvolumes"),
        _rule(_READ, ("storage.k8s.io",), "storageclasses"),
        _rule(("get", "list", "patch", "update", "watch"), _CORE, "persistentvolumeclaims"),
    ],
}
_BINDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "cluster-admin": (("Group", "system:masters"),),
    "system:discovery": (("Group", "system:authenticated"),),
    "system:public-info-viewer": (("Group", "system:authenticated"), ("Group", "system:unauthenticated")),
    "system:basic-user": (("Group", "system:authenticated"),),
    "system:kube-scheduler": (("User", "system:kube-scheduler"),),
    "system:volume-scheduler": (("User", "system:kube-scheduler"),),
}
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
    for name, rules in _ROLES.items():
        _put(api, f"clusterroles.{_RBAC}", name, _RBAC_METADATA, {"rules": rules})
    for role, subjects in _BINDINGS.items():
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
    rules = [_rule(_READ, _CORE, "configmaps", names=(_CLIENT_CA,))]
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
