"""What an API server fills in when a pod or claim is created."""

from __future__ import annotations

from typing import Any

import pytest

from harness.workload_manifests import objects
from kubesched.k8s.model.core import Pod, PriorityClass, Toleration
from kubesched.k8s.model.storage import PersistentVolumeClaim, StorageClass
from kubesched.k8s.workloads.admission import AdmissionError, admit_claim, admit_pod
from kubesched.testing import make


def _pod(**spec: Any) -> Pod:
    containers = spec.pop("containers", [{"name": "main"}])
    labels = spec.pop("labels", {})
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels},
        "spec": {"containers": containers, **spec},
    }
    (found,) = objects(manifest)
    assert isinstance(found, Pod)
    return found


def _class(name: str, value: int, **fields: Any) -> PriorityClass:
    manifest = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }
    (found,) = objects(manifest)
    assert isinstance(found, PriorityClass)
    return found


CLASSES = {
    "high": _class("high", 1000),
    "polite": _class("polite", 10, preemptionPolicy="Never"),
    "usual": _class("usual", 5, globalDefault=True),
}


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        pytest.param({}, {}, ("", 0, "PreemptLowerPriority"), id="no class, no default"),
        pytest.param({}, CLASSES, ("usual", 5, "PreemptLowerPriority"), id="the global default"),
        pytest.param({"priorityClassName": "high"}, CLASSES, ("high", 1000, "PreemptLowerPriority"), id="its class"),
        pytest.param({"priorityClassName": "polite"}, CLASSES, ("polite", 10, "Never"), id="the class's policy"),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            {},
            ("system-node-critical", 2000001000, "PreemptLowerPriority"),
            id="a class that every cluster has",
        ),
        pytest.param({"priority": 7}, {}, ("", 7, "PreemptLowerPriority"), id="a priority that is written out"),
    ],
)
def test_priority_comes_from_the_class(
    spec: dict[str, Any], classes: dict[str, PriorityClass], expected: tuple[str, int, str]
) -> None:
    found = admit_pod(_pod(**spec), classes).spec
    assert (found.priority_class_name, found.priority, found.preemption_policy) == expected


def test_a_class_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AdmissionError, match="no PriorityClass with name nope was found"):
        admit_pod(_pod(priorityClassName="nope"), CLASSES)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({"limits": {"cpu": "2"}}, {"cpu": "2"}, id="limits alone"),
        pytest.param(
            {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            {"cpu": "1", "memory": "1Gi"},
            id="what is requested stays",
        ),
        pytest.param({"requests": {"cpu": "1"}}, {"cpu": "1"}, id="requests alone"),
    ],
)
def test_requests_come_from_limits(resources: dict[str, Any], expected: dict[str, str]) -> None:
    containers = [{"name": "main", "resources": resources}]
    found = admit_pod(_pod(containers=containers, initContainers=containers), {}).spec
    for container in (*found.containers, *(found.init_containers or ())):
        assert container.resources is not None
        assert container.resources.requests == expected


def test_pod_level_requests_come_from_containers_then_from_limits() -> None:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]
    found = admit_pod(_pod(containers=containers, resources={"limits": {"cpu": "2", "memory": "1Gi"}}), {}).spec
    assert found.resources is not None
    assert found.resources.requests == {"cpu": "500m", "memory": "1Gi"}


NOT_READY = Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute", 300)
UNREACHABLE = Toleration("node.kubernetes.io/unreachable", "Exists", "", "NoExecute", 300)


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="none given"),
        pytest.param([{"operator": "Exists"}], [], id="everything tolerated"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            [UNREACHABLE],
            id="one of them given",
        ),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}],
            [NOT_READY, UNREACHABLE],
            id="given with another effect",
        ),
    ],
)
def test_pods_tolerate_a_lost_node_for_a_while(given: list[dict[str, str]], added: list[Toleration]) -> None:
    found = admit_pod(_pod(tolerations=given), {}).spec.tolerations or ()
    assert list(found[len(given) :]) == added


@pytest.mark.parametrize(
    ("host_network", "expected"),
    [pytest.param(True, (8080, 9090), id="on the host"), pytest.param(False, (0, 9090), id="on its own network")],
)
def test_ports_on_the_hosts_network_are_host_ports(host_network: bool, expected: tuple[int, int]) -> None:
    containers = [{"name": "main", "ports": [{"containerPort": 8080}, {"containerPort": 1, "hostPort": 9090}]}]
    (container,) = admit_pod(_pod(containers=containers, hostNetwork=host_network), {}).spec.containers
    assert tuple(port.host_port for port in container.ports or ()) == expected


def test_label_keys_are_merged_into_selectors_once() -> None:
    term = {
        "topologyKey": make.ZONE,
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["hash", "absent"],
        "mismatchLabelKeys": ["tier"],
    }
    spread = {**make.spread(make.ZONE, labels={"app": "web"}), "matchLabelKeys": ["hash"]}
    pod = _pod(
        labels={"hash": "1", "tier": "a"},
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        topologySpreadConstraints=[spread],
    )
    admitted = admit_pod(pod, {})
    assert admitted.spec.affinity is not None
    assert admitted.spec.affinity.pod_anti_affinity is not None
    (found,) = admitted.spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution or ()
    assert found.label_selector is not None
    merged = [(r.key, r.operator, r.values) for r in found.label_selector.match_expressions or ()]
    assert merged == [("hash", "In", ("1",)), ("tier", "NotIn", ("a",))]
    (constraint,) = admitted.spec.topology_spread_constraints or ()
    assert constraint.label_selector is not None
    assert len(constraint.label_selector.match_expressions or ()) == 1
    assert admit_pod(admitted, {}) == admitted


def _storage_class(name: str, *, is_default: bool, created: str = "") -> StorageClass:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations, "creationTimestamp": created or None},
    }
    (found,) = objects(manifest)
    assert isinstance(found, StorageClass)
    return found


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "newer", id="none named: the newest default"),
        pytest.param({"storageClassName": ""}, "", id="an empty one is meant"),
        pytest.param({"storageClassName": "plain"}, "plain", id="one named"),
    ],
)
def test_a_claim_gets_the_default_storage_class(spec: dict[str, str], expected: str) -> None:
    classes = [
        _storage_class("older", is_default=True, created="2026-01-01T00:00:00Z"),
        _storage_class("newer", is_default=True, created="2026-02-01T00:00:00Z"),
        _storage_class("plain", is_default=False),
    ]
    manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    (claim,) = objects(manifest)
    assert isinstance(claim, PersistentVolumeClaim)
    assert admit_claim(claim, classes).spec.storage_class_name == expected
