"""What keeps a node: the rules of Karpenter and of Cluster Autoscaler, case by case as their sources have them."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.planning.consolidate.state import NO_PLACE
from kubesched.testing import make

LATER = "2026-01-01T10:00:00Z"
DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
LOCAL = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
OF_THE_SEARCH = (NO_PLACE, "Can't replace with a cheaper node")
"""No rule: it is the last node that could take the pod."""
Manifest = dict[str, Any]


def owned(kind: str = "ReplicaSet", **metadata: Any) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "o", "controller": True}
    return {"ownerReferences": [reference], **metadata}


def one_pod(
    *, kind: str | None = "ReplicaSet", namespace: str = "default", status: Manifest | None = None, **more: Any
) -> Manifest:
    metadata = {"creationTimestamp": LATER, **(owned(kind) if kind else {}), **more.pop("metadata", {})}
    running = {"phase": "Running", **(status or {})}
    return make.pod(
        "p", namespace=namespace, requests={"cpu": "500m"}, on="n0", metadata=metadata, status=running, **more
    )


def what_keeps(rules: str, pod: Manifest, *others: Manifest) -> str | None:
    """The identifier of the reason for which its node stays; None if it can go."""
    nodes = [make.node(f"n{k}", cpu="4", memory="8Gi", labels={make.HOSTNAME: f"n{k}"}) for k in range(2)]
    nodes[1]["metadata"]["creationTimestamp"] = LATER
    world = kubesched.world([*nodes, pod, *others])
    report = kubesched.consolidate(world, rules=rules, policy="karpenter" if rules == "karpenter" else "best")
    kept = {one.node: one.reason.identifier for one in report.kept}
    return kept.get("n0") if kept.get("n0") not in OF_THE_SEARCH else None


def budget(allowed: int, name: str = "b", namespace: str = "default") -> Manifest:
    spec = {"minAvailable": 1 - allowed, "selector": {"matchLabels": {"app": "a"}}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


ACTIVE = f'pod has "{DISRUPT}" annotation'


@pytest.mark.parametrize(
    ("value", "started", "reason"),
    [
        pytest.param("true", None, ACTIVE, id="true"),
        pytest.param("false", None, None, id="false"),
        pytest.param("yes", None, None, id="neither true nor a span: as if it were not there"),
        pytest.param("0s", None, None, id="no positive span"),
        pytest.param("-5m", None, None, id="a negative span"),
        pytest.param("1h", "2026-01-01T09:30:00Z", ACTIVE, id="younger"),
        pytest.param("1h", "2026-01-01T08:30:00Z", None, id="older"),
        pytest.param("1h", "2026-01-01T09:00:00Z", None, id="just as old"),
        pytest.param("1h", None, ACTIVE, id="nobody knows since when it runs"),
    ],
)
def test_karpenter_pods_that_are_not_to_be_disrupted(value: str, started: str | None, reason: str | None) -> None:
    status = {"startTime": started} if started else {}
    pod = one_pod(metadata={"annotations": {DISRUPT: value}}, status=status)
    assert what_keeps("karpenter", pod) == reason


def test_karpenter_asks_daemons_too() -> None:
    """They are not moved, but their annotation and their budget keep the node."""
    assert what_keeps("karpenter", one_pod(kind="DaemonSet")) is None
    assert what_keeps("karpenter", one_pod(kind="DaemonSet", metadata={"annotations": {DISRUPT: "true"}})) == ACTIVE
    covered = one_pod(kind="DaemonSet", labels={"app": "a"})
    assert what_keeps("karpenter", covered, budget(0)) == "pdb prevents pod evictions"
    assert what_keeps("drain", covered, budget(0)) is None


def test_karpenter_several_budgets() -> None:
    pod = one_pod(labels={"app": "a"})
    both = "eviction does not support multiple PDBs"
    assert what_keeps("karpenter", pod, budget(1), budget(1, "c")) == both
    assert what_keeps("karpenter", pod, budget(0)) == "pdb prevents pod evictions"


VOLUMES: dict[str, Manifest] = {
    "disk": {"name": "v", "emptyDir": {}},
    "memory": {"name": "v", "emptyDir": {"medium": "Memory"}},
    "host": {"name": "v", "hostPath": {"path": "/x"}},
}


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(one_pod(kind=None), "NotReplicated", id="nobody's"),
        pytest.param(one_pod(kind="CloneSet"), "NotReplicated", id="an unknown controller's"),
        pytest.param(one_pod(kind="Job"), None, id="a job's"),
        pytest.param(one_pod(kind="StatefulSet"), None, id="a set's"),
        pytest.param(one_pod(kind=None, metadata={"annotations": {SAFE: "true"}}), None, id="safe, though nobody's"),
        pytest.param(one_pod(metadata={"annotations": {SAFE: "false"}}), "NotSafeToEvictAnnotation", id="not safe"),
        pytest.param(one_pod(namespace="kube-system"), "UnmovableKubeSystemPod", id="of the system"),
        pytest.param(
            one_pod(namespace="kube-system", metadata={"creationTimestamp": "2026-01-01T09:30:00Z"}),
            "UnmovableKubeSystemPod",
            id="of the system, half an hour old",
        ),
        pytest.param(
            one_pod(namespace="kube-system", metadata={"creationTimestamp": "2026-01-01T08:30:00Z"}),
            None,
            id="of the system, more than an hour old",
        ),
        pytest.param(
            one_pod(namespace="kube-system", metadata={"annotations": {SAFE: "false"}}),
            "UnmovableKubeSystemPod",
            id="the system before not safe",
        ),
        pytest.param(one_pod(spec={"volumes": [VOLUMES["disk"]]}), "LocalStorageRequested", id="emptyDir"),
        pytest.param(one_pod(spec={"volumes": [VOLUMES["memory"]]}), None, id="emptyDir in memory"),
        pytest.param(one_pod(spec={"volumes": [VOLUMES["host"]]}), "LocalStorageRequested", id="hostPath"),
        pytest.param(
            one_pod(spec={"volumes": [VOLUMES["disk"]]}, metadata={"annotations": {LOCAL: "w,v"}}), None, id="let go"
        ),
        pytest.param(
            one_pod(spec={"volumes": [VOLUMES["disk"]]}, metadata={"annotations": {SAFE: "false"}}),
            "NotSafeToEvictAnnotation",
            id="not safe before local storage",
        ),
        pytest.param(
            one_pod(kind=None, spec={"volumes": [VOLUMES["disk"]]}), "NotReplicated", id="nobody's before local storage"
        ),
    ],
)
def test_cluster_autoscaler_one_pod(pod: Manifest, reason: str | None) -> None:
    assert what_keeps("cluster-autoscaler", pod) == (reason and f"BlockedByPod/{reason}")


def test_cluster_autoscaler_budgets() -> None:
    pod = one_pod(labels={"app": "a"})
    assert what_keeps("cluster-autoscaler", pod, budget(0)) == "BlockedByPod/NotEnoughPdb"
    system = one_pod(labels={"app": "a"}, namespace="kube-system")
    assert what_keeps("cluster-autoscaler", system, budget(1, namespace="kube-system")) is None


def test_kubectl_drain_minds_an_emptydir_in_memory() -> None:
    assert what_keeps("drain", one_pod(spec={"volumes": [VOLUMES["memory"]]})) == "LocalStorage"


@pytest.mark.parametrize("rules", ["drain", "karpenter", "cluster-autoscaler"])
def test_who_is_terminating_keeps_nobody_and_is_not_made_anew(rules: str) -> None:
    """Its controller has replaced it already."""
    leaving = {"deletionTimestamp": LATER, "annotations": {DISRUPT: "true", SAFE: "false"}}
    pod = one_pod(metadata=leaving)
    assert what_keeps(rules, pod) is None
    nodes = [make.node(f"n{k}", cpu="4", memory="8Gi") for k in range(2)]
    report = kubesched.consolidate([*nodes, pod], rules=rules)
    assert all(not step.moves for step in report.steps)


def test_cluster_autoscaler_of_a_node_with_gpus_only_those_count() -> None:
    def kept(gpus: int, cpu: str) -> bool:
        node = make.node("n0", cpu="4", memory="8Gi", labels={make.HOSTNAME: "n0"})
        node["status"]["allocatable"]["nvidia.com/gpu"] = "4"
        node["status"].setdefault("capacity", {})["nvidia.com/gpu"] = "4"
        pods = [
            make.pod(f"g{k}", requests={"nvidia.com/gpu": "1", "cpu": cpu}, on="n0", metadata=owned())
            for k in range(gpus)
        ]
        other = make.node("n1", cpu="8", memory="8Gi", labels={make.HOSTNAME: "n1"})
        other["status"]["allocatable"]["nvidia.com/gpu"] = "8"
        busy = make.pod("busy", requests={"nvidia.com/gpu": "4"}, on="n1", metadata=owned())
        found = kubesched.consolidate(
            [node, other, busy, *pods], policy="cluster-autoscaler", rules="cluster-autoscaler"
        )
        return not any("n0" in step.delete for step in found.steps)

    assert (kept(1, "100m"), kept(1, "3"), kept(2, "100m"), kept(3, "100m")) == (False, False, False, True)
