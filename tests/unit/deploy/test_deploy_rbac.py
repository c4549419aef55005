"""kubesched may do what it does, and nothing that kube-scheduler may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploy_files import BASE, NAMESPACE, OVERLAYS, ROOT, only, read_one, resources_of
from deploy_rights import CLUSTER, LEASE, READ, Right, rights

from kubesched.k8s.client.resources import RESOURCES, Resource
from kubesched.live.serving import authentication

OBJECTS = resources_of(BASE)

KUBE_SCHEDULER = set().union(
    # system:kube-scheduler as a v1.36 API server with default gates creates it
    rights(("", "events.k8s.io"), "events", ("create", "patch", "update")),
    rights(("coordination.k8s.io",), "leases", ("create",)),
    rights(("coordination.k8s.io",), "leases", (*READ, "update"), "kube-scheduler"),
    rights(("",), "nodes pods services replicationcontrollers namespaces", READ),
    rights(("",), "persistentvolumeclaims persistentvolumes", READ),
    rights(("",), "pods", ("delete",)),
    rights(("",), "pods/binding bindings", ("create",)),
    rights(("",), "pods/status", ("patch", "update")),
    rights(("",), "pods/finalizers", ("update",)),
    rights(("apps", "extensions"), "replicasets", READ),
    rights(("apps",), "statefulsets", READ),
    rights(("policy",), "poddisruptionbudgets", READ),
    rights(("authentication.k8s.io",), "tokenreviews", ("create",)),
    rights(("authorization.k8s.io",), "subjectaccessreviews", ("create",)),
    rights(("storage.k8s.io",), "csinodes volumeattachments csidrivers csistoragecapacities", READ),
    rights(("resource.k8s.io",), "deviceclasses resourceslices", READ),
    rights(("resource.k8s.io",), "resourceclaims", (*READ, "create", "update", "patch", "delete")),
    rights(("resource.k8s.io",), "resourceclaims/status", (*READ, "update", "patch")),
    rights(("resource.k8s.io",), "resourceclaims/binding", ("update", "patch")),
    # system:volume-scheduler
    rights(("",), "persistentvolumes persistentvolumeclaims", (*READ, "update", "patch")),
    rights(("storage.k8s.io",), "storageclasses", READ),
)

MORE_THAN_KUBE_SCHEDULER = {
    Right("coordination.k8s.io", "leases", "get", "kubesched"): "beside kube-scheduler the lease is another one",
    Right("coordination.k8s.io", "leases", "update", "kubesched"): "beside kube-scheduler the lease is another one",
}

WRITES = set().union(
    rights(("",), "pods/binding", ("create",)),
    rights(("",), "pods/status", ("patch",)),
    rights(("",), "pods", ("delete",)),
    rights(("",), "persistentvolumes persistentvolumeclaims", ("patch",)),
    rights(("resource.k8s.io",), "resourceclaims", ("create", "update", "delete")),
    # The API server asks for the second one when a status changes who has which devices.
    rights(("resource.k8s.io",), "resourceclaims/status resourceclaims/binding", ("update",)),
    rights(("", "events.k8s.io"), "events", ("create", "patch")),
    rights(("authentication.k8s.io",), "tokenreviews", ("create",)),
    rights(("authorization.k8s.io",), "subjectaccessreviews", ("create",)),
)
"""All that is written; `test_deploy_requests` shows that these are the requests."""


def test_kubesched_may_nothing_that_kube_scheduler_may_not() -> None:
    beyond = (CLUSTER | LEASE) - KUBE_SCHEDULER
    assert beyond == set(MORE_THAN_KUBE_SCHEDULER)


def test_no_rule_says_all() -> None:
    assert [right for right in CLUSTER | LEASE if "*" in (right.group, right.resource, right.verb)] == []


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.full_name)
def test_every_kind_that_is_followed_may_be_read(resource: Resource) -> None:
    assert rights((resource.group,), resource.plural, READ) <= CLUSTER


def test_the_cluster_role_is_what_is_followed_and_what_is_written() -> None:
    followed = set().union(*(rights((resource.group,), resource.plural, READ) for resource in RESOURCES))
    assert followed | WRITES == CLUSTER


def test_leases_are_of_one_namespace_and_changed_by_name() -> None:
    group = ("coordination.k8s.io",)
    assert rights(group, "leases", ("create",)) | rights(group, "leases", ("get", "update"), "kubesched") == LEASE
    assert only(OBJECTS, "Role", "kubesched-lease")["metadata"]["namespace"] == NAMESPACE


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_the_role_names_the_lease_that_the_configuration_names(overlay: Path) -> None:
    config, patch = overlay / "config.yaml", overlay / "lease-name.yaml"
    election = read_one(config if config.exists() else BASE / "config.yaml")["leaderElection"]
    rule = only(OBJECTS, "Role", "kubesched-lease")["rules"][1]
    named = rule["resourceNames"]
    if patch.exists():
        named = [step["value"] for step in read_one(patch) if step["op"] == "replace"]
    assert named == [election["resourceName"]]
    assert election["resourceNamespace"] == NAMESPACE


@pytest.mark.parametrize(
    ("binding", "kind", "role"),
    [
        pytest.param("kubesched", "ClusterRole", "kubesched", id="in the whole cluster"),
        pytest.param("kubesched-lease", "Role", "kubesched-lease", id="for leases"),
        pytest.param(
            "kubesched-authentication-reader",
            "Role",
            "extension-apiserver-authentication-reader",
            id="for the authorities of clients, by a role that Kubernetes brings",
        ),
    ],
)
def test_roles_are_bound_to_the_account(binding: str, kind: str, role: str) -> None:
    found = only(OBJECTS, "ClusterRoleBinding" if kind == "ClusterRole" else "RoleBinding", binding)
    assert found["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
    assert found["subjects"] == [{"kind": "ServiceAccount", "name": "kubesched", "namespace": NAMESPACE}]


def test_the_authorities_of_clients_are_read_where_that_role_allows_it() -> None:
    assert (authentication.CONFIG_MAP_NAMESPACE, authentication.CONFIG_MAP_NAME) == (
        NAMESPACE,
        "extension-apiserver-authentication",
    )


@pytest.mark.parametrize("resource", sorted({right.resource for right in CLUSTER | LEASE}))
def test_the_reference_says_why(resource: str) -> None:
    assert f"`{resource}`" in (ROOT / "docs" / "reference" / "rbac.md").read_text()
