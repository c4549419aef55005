"""What objects take of a quota."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubesched.k8s.model import limits

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _pod(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": [], **spec}, "status": status or {}}


def _container(name: str = "c", **requests: str) -> dict[str, Any]:
    named = {key.replace("__", "/").replace("_", "-"): value for key, value in requests.items()}
    return {"name": name, "resources": {"requests": named}}


def _taken(resource: str, obj: dict[str, Any]) -> dict[str, str]:
    return {name: str(amount) for name, amount in limits.usage(resource, obj, _NOW).items()}


def test_a_pod_takes_requests_under_both_names_and_limits_under_one() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "x.io/gpu": "2"}, "limits": {"cpu": "3"}}}
    assert _taken("pods", _pod(containers=[container])) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1",
        "requests.cpu": "1",
        "requests.x.io/gpu": "2",
        "limits.cpu": "3",
    }


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_only_counts_as_an_object(phase: str) -> None:
    pod = _pod({"phase": phase}, containers=[_container(cpu="1")])
    assert _taken("pods", pod) == {"count/pods": "1"}


def test_a_pod_that_should_be_gone_long_ago_takes_nothing() -> None:
    pod = _pod(containers=[_container(cpu="1")])
    pod["metadata"] = {"deletionTimestamp": "2025-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30}
    assert _taken("pods", pod) == {"count/pods": "1"}
    pod["metadata"]["deletionGracePeriodSeconds"] = 90
    assert _taken("pods", pod)["cpu"] == "1"


def test_overhead_init_containers_and_what_runs_are_counted() -> None:
    pod = _pod(
        {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]},
        containers=[_container(cpu="1")],
        initContainers=[_container("i", cpu="2", memory="1Gi")],
        overhead={"cpu": "500m"},
    )
    taken = _taken("pods", pod)
    assert (taken["requests.cpu"], taken["requests.memory"]) == ("3500m", "1Gi")


@pytest.mark.parametrize(
    ("selector", "is_in"),
    [
        ({"operator": "In", "values": ["gold"]}, True),
        ({"operator": "In", "values": ["iron"]}, False),
        ({"operator": "NotIn", "values": ["gold"]}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "DoesNotExist"}, False),
    ],
)
def test_scopes_by_priority_class(selector: dict[str, Any], is_in: bool) -> None:
    selectors = [{"scopeName": "PriorityClass", **selector}]
    assert limits.is_in_scope("pods", selectors, _pod(priorityClassName="gold")) == is_in


def test_a_pod_that_looks_into_other_namespaces() -> None:
    term = {"topologyKey": "zone", "namespaceSelector": {}}
    weighted = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    selectors = limits.scope_selectors({"scopes": ["CrossNamespacePodAffinity"]})
    assert limits.is_in_scope("pods", selectors, _pod(affinity={"podAntiAffinity": weighted}))
    assert not limits.is_in_scope("pods", selectors, _pod())
    assert not limits.is_in_scope("services", selectors, {"spec": {}})


def test_claims_count_under_their_storage_class_as_well() -> None:
    spec = {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}}
    taken = _taken("persistentvolumeclaims", {"metadata": {}, "spec": spec})
    assert taken["requests.storage"] == taken["gold.storageclass.storage.k8s.io/requests.storage"] == "2"
    assert taken["gold.storageclass.storage.k8s.io/persistentvolumeclaims"] == "1"


def test_claims_for_devices_count_the_most_that_a_request_can_get() -> None:
    requests = [
        {"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
        {"firstAvailable": [{"deviceClassName": "gpu", "count": 3}, {"deviceClassName": "gpu", "count": 1}]},
        {"exactly": {"deviceClassName": "nic", "allocationMode": "All"}},
    ]
    taken = _taken("resourceclaims.resource.k8s.io", {"metadata": {}, "spec": {"devices": {"requests": requests}}})
    assert taken["gpu.deviceclass.resource.k8s.io/devices"] == "5"
    assert taken["nic.deviceclass.resource.k8s.io/devices"] == "32"


def test_what_is_looked_at_for_the_names_of_a_quota() -> None:
    names = ["requests.cpu", "services.nodeports", "count/jobs.batch", "secrets", "count/events"]
    assert limits.resources_counted(names) == ["jobs.batch", "pods", "secrets", "services"]
