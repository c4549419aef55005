"""What exists on a server from its first start: namespaces, priority classes, the roles that users of a cluster expect,
the service that stands for the server itself, and the config map by which components know who signs clients'
certificates.

Only what is missing is written, so that a restart changes nothing. Read ``server.py`` for who calls this.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.api import Api
from kubesched.playground.apiserver.bootstrap_roles import (
    AGGREGATED,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CORE,
    READ,
    ROLE_LABELS,
    rule,
)
from kubesched.playground.apiserver.kinds.kind import Object
from kubesched.playground.apiserver.kinds.services import FIRST_ADDRESS
from kubesched.playground.apiserver.patching.apply import record
from kubesched.playground.apiserver.storage.store import ObjectKey

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
