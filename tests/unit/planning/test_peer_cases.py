"""Situations that Cluster Autoscaler and Karpenter decide, with their outcomes: which nodes a peer would let go."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.testing import make

Manifest = dict[str, Any]
SEEN = "2026-01-01T17:00:00Z"
CA = "cluster-autoscaler.kubernetes.io"
NODE_POOL = "karpenter.sh/nodepool"
PLEASE_NOT = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}


def workload(kind: str, name: str, namespace: str = "default") -> Manifest:
    version = {"ReplicationController": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    template: Manifest = {"metadata": {"labels": {"o": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec: Manifest = {"template": template}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        spec |= {"parallelism": 0}
    else:
        labels = {"o": name}
        spec |= {"selector": labels if kind == "ReplicationController" else {"matchLabels": labels}}
        spec |= {} if kind == "DaemonSet" else {"replicas": 0}
        spec |= {"serviceName": "s"} if kind == "StatefulSet" else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def pod(
    name: str = "bar", owner: str = "ReplicaSet", *, namespace: str = "default", phase: str = "Running", **more: Any
) -> Manifest:
    metadata: Manifest = {"creationTimestamp": SEEN, **more.pop("metadata", {})}
    if owner:
        version = "v1" if owner in ("ReplicationController", "Node") else "apps/v1"
        reference = {"apiVersion": version, "kind": owner, "name": "o", "uid": "o", "controller": True}
        metadata["ownerReferences"] = [reference]
    status = {"phase": phase, **more.pop("status", {})}
    return make.pod(name, namespace=namespace, on="n0", metadata=metadata, status=status, **more)


def volume(name: str, **source: Any) -> Manifest:
    return {"name": name, **source}


def budget(selects: str, namespace: str = "default", *, allowed: int, policy: str = "") -> Manifest:
    found = make.budget("b", {"k8s-app": selects}, allowed=allowed, namespace=namespace)
    found["spec"] |= {"minAvailable": 1 - allowed}
    if policy:
        found["spec"]["unhealthyPodEvictionPolicy"] = policy
    return found


def reason(rules: str, *items: Manifest, node: Manifest | None = None) -> str | None:
    """Why `n0` stays; None if nothing but room decides."""
    nodes = [make.node(f"n{k}", cpu="4", memory="8Gi", labels={make.HOSTNAME: f"n{k}"}) for k in range(2)]
    nodes[1]["metadata"]["creationTimestamp"] = SEEN
    for key, value in (node or {}).items():
        nodes[0][key].update(value)
    anchor = make.pod("anchor", on="n1", requests={"cpu": "100m"}, metadata=PLEASE_NOT)  # keeps the other node there
    report = kubesched.consolidate([*nodes, anchor, *items], rules=rules)
    kept = {one.node: one.reason.identifier for one in report.kept}
    return kept.get("n0")


def ago(minutes: int) -> str:
    return f"2026-01-01T{17 - -(-minutes // 60):02d}:{-minutes % 60:02d}:00Z"


LOCAL = f"{CA}/safe-to-evict-local-volumes"
SAFE = f"{CA}/safe-to-evict"
THREE = [volume(f"scratch-{k}", emptyDir={}) for k in (1, 2, 3)]
SYSTEM: Manifest = {"namespace": "kube-system", "labels": {"k8s-app": "bar"}}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param([pod(owner="")], "BlockedByPod/NotReplicated", id="unreplicated"),
        pytest.param([pod(), workload("ReplicaSet", "o")], None, id="replicated"),
        pytest.param(
            [pod(owner="", namespace="kube-system", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})],
            None,
            id="mirror",
        ),
        pytest.param([pod(), pod("d", "DaemonSet"), workload("DaemonSet", "o")], None, id="daemon beside a replica"),
        pytest.param([pod(namespace="kube-system")], "BlockedByPod/UnmovableKubeSystemPod", id="of the system"),
        pytest.param(
            [pod(namespace="kube-system", metadata={"creationTimestamp": ago(59)})],
            "BlockedByPod/UnmovableKubeSystemPod",
            id="of the system, before the timeout",
        ),
        pytest.param(
            [pod(namespace="kube-system", metadata={"creationTimestamp": ago(61)})],
            None,
            id="of the system, after the timeout",
        ),
        pytest.param(
            [
                pod("old", namespace="kube-system", metadata={"creationTimestamp": ago(61)}),
                pod("new", namespace="kube-system", metadata={"creationTimestamp": ago(59)}),
            ],
            "BlockedByPod/UnmovableKubeSystemPod",
            id="of the system, one old, one new",
        ),
        pytest.param(
            [pod(spec={"volumes": [volume("empty-vol", emptyDir={})]})],
            "BlockedByPod/LocalStorageRequested",
            id="local storage",
        ),
        pytest.param(
            [pod(spec={"volumes": [volume("my-repo", gitRepo={"repository": "r"})]})], None, id="non-local storage"
        ),
        pytest.param(
            [pod(labels={"k8s-app": "bar"}), budget("bar", allowed=0)], "BlockedByPod/NotEnoughPdb", id="budget blocks"
        ),
        pytest.param([pod(labels={"k8s-app": "bar"}), budget("bar", allowed=1)], None, id="budget allows"),
        pytest.param([pod(labels={"k8s-app": "bar"}), budget("foo", allowed=0)], None, id="budget of others"),
        pytest.param(
            [pod(labels={"k8s-app": "bar"}), budget("bar", "other", allowed=0)], None, id="budget of another namespace"
        ),
        pytest.param([pod(owner="ReplicationController"), workload("ReplicationController", "o")], None, id="RC's"),
        pytest.param([pod(owner="DaemonSet"), workload("DaemonSet", "o")], None, id="DS's"),
        pytest.param(
            [pod(owner="CustomDaemonSet", metadata={"annotations": {f"{CA}/daemonset-pod": "true"}})],
            None,
            id="of a custom daemon set",
        ),
        pytest.param([pod(owner="CustomDaemonSet")], "BlockedByPod/NotReplicated", id="of a custom controller"),
        pytest.param([pod(owner="Job"), workload("Job", "o")], None, id="Job's"),
        pytest.param([pod(owner="StatefulSet"), workload("StatefulSet", "o")], None, id="SS's"),
        pytest.param([pod(), workload("ReplicaSet", "else")], "BlockedByPod/ControllerNotFound", id="RS is gone"),
        pytest.param(
            [pod(owner="ReplicationController"), workload("ReplicationController", "else")],
            "BlockedByPod/ControllerNotFound",
            id="RC is gone",
        ),
        pytest.param([pod(owner="Job"), workload("Job", "else")], "BlockedByPod/ControllerNotFound", id="Job is gone"),
        pytest.param(
            [pod(owner="StatefulSet"), workload("StatefulSet", "else")],
            "BlockedByPod/ControllerNotFound",
            id="SS is gone",
        ),
        pytest.param(
            [pod(metadata={"annotations": {SAFE: "true"}}), workload("ReplicaSet", "else")],
            "BlockedByPod/ControllerNotFound",
            id="RS is gone, safe to evict",
        ),
        pytest.param([pod(metadata={"deletionTimestamp": ago(60)})], None, id="being deleted for an hour"),
        pytest.param(
            [pod(spec={"volumes": THREE}, metadata={"annotations": {LOCAL: "scratch-1,scratch-2,scratch-3"}})],
            None,
            id="three local volumes, all safe",
        ),
        pytest.param(
            [pod(spec={"volumes": THREE}, metadata={"annotations": {LOCAL: "scratch-1,scratch-2"}})],
            "BlockedByPod/LocalStorageRequested",
            id="three local volumes, two safe",
        ),
        pytest.param(
            [pod(spec={"volumes": THREE}, metadata={"annotations": {LOCAL: "scratch-1,scratch-5"}})],
            "BlockedByPod/LocalStorageRequested",
            id="three local volumes, one safe, one unknown",
        ),
        pytest.param(
            [pod(spec={"volumes": THREE[:1]}, metadata={"annotations": {LOCAL: ""}})],
            "BlockedByPod/LocalStorageRequested",
            id="a local volume, none safe",
        ),
        pytest.param(
            [pod(spec={"volumes": THREE[:1]}, metadata={"annotations": {LOCAL: "scratch-2"}})],
            "BlockedByPod/LocalStorageRequested",
            id="a local volume, another safe",
        ),
        pytest.param([pod(owner="", phase="Failed", spec={"restartPolicy": "Never"})], None, id="failed"),
        pytest.param([pod(owner="", phase="Failed")], None, id="evicted by its kubelet"),
        pytest.param([pod(owner="", phase="Succeeded", spec={"restartPolicy": "OnFailure"})], None, id="succeeded"),
        pytest.param([pod(owner="", metadata={"annotations": {SAFE: "true"}})], None, id="safe"),
        pytest.param(
            [pod(owner="", namespace="kube-system", metadata={"annotations": {SAFE: "true"}})],
            None,
            id="of the system, safe",
        ),
        pytest.param(
            [pod(owner="", spec={"volumes": THREE[:1]}, metadata={"annotations": {SAFE: "true"}})],
            None,
            id="local storage, safe",
        ),
        pytest.param(
            [pod(metadata={"annotations": {SAFE: "false"}})], "BlockedByPod/NotSafeToEvictAnnotation", id="not safe"
        ),
        pytest.param([pod(metadata={"annotations": {SAFE: "no"}})], None, id="neither safe nor not"),
        pytest.param(
            [pod(owner="", metadata={"annotations": {SAFE: "on-completion"}})],
            "BlockedByOnCompletionPod",
            id="when it is complete",
        ),
        pytest.param([pod(**SYSTEM), budget("bar", "kube-system", allowed=1)], None, id="of the system, with a budget"),
        pytest.param(
            [pod(**SYSTEM), budget("foo", "kube-system", allowed=1)],
            "BlockedByPod/UnmovableKubeSystemPod",
            id="of the system, a budget of others",
        ),
        pytest.param(
            [pod(**SYSTEM), budget("bar", "default", allowed=1)],
            "BlockedByPod/UnmovableKubeSystemPod",
            id="of the system, a budget elsewhere",
        ),
    ],
)
def test_cluster_autoscaler_pods_to_move(items: list[Manifest], expected: str | None) -> None:
    assert reason("cluster-autoscaler", *items) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param({}, None, id="regular"),
        pytest.param(
            {"spec": {"taints": [make.taint("ToBeDeletedByClusterAutoscaler", "1608310770")]}},
            "CurrentlyBeingDeleted",
            id="just deleted",
        ),
        pytest.param(
            {"metadata": {"annotations": {f"{CA}/scale-down-disabled": "true"}}},
            "ScaleDownDisabledAnnotation",
            id="not to be scaled down",
        ),
        pytest.param(
            {"metadata": {"annotations": {f"{CA}/scale-down-disabled": "false"}}}, None, id="to be scaled down"
        ),
        pytest.param({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, None, id="not ready"),
    ],
)
def test_cluster_autoscaler_nodes(node: Manifest, expected: str | None) -> None:
    assert reason("cluster-autoscaler", node=node) == expected


@pytest.mark.parametrize(
    ("millis", "daemon_millis", "is_kept"),
    [
        pytest.param(600, 0, True, id="highly utilised"),
        pytest.param(100, 0, False, id="underutilised"),
        pytest.param(500, 0, False, id="at the threshold"),
        pytest.param(100, 500, True, id="daemons count"),
    ],
)
def test_cluster_autoscaler_utilisation(millis: int, daemon_millis: int, is_kept: bool) -> None:
    nodes = [make.node(f"n{k}", cpu="1" if k == 0 else "8", memory="8Gi") for k in range(2)]
    busy = make.pod("busy", requests={"cpu": "5"}, on="n1", metadata=pod()["metadata"])
    items = [*nodes, busy, pod("p", requests={"cpu": f"{millis}m"})]
    if daemon_millis:
        items.append(pod("d", "DaemonSet", requests={"cpu": f"{daemon_millis}m"}))
    report = kubesched.consolidate(items, policy="cluster-autoscaler", rules="cluster-autoscaler")
    kept = {one.node: one.reason.identifier for one in report.kept}
    assert kept.get("n0") == ("NotUnderutilized" if is_kept else None)


def test_cluster_autoscaler_drains_a_node_whose_budget_lets_one_at_a_time_go() -> None:
    """It evicts again and again until the budget lets the next one go."""
    pods = [pod(f"p{k}", labels={"k8s-app": "a"}, requests={"cpu": "100m"}) for k in range(3)]
    guarded = make.budget("b", {"k8s-app": "a"}, allowed=1)
    guarded["spec"] = {"minAvailable": 2, "selector": {"matchLabels": {"k8s-app": "a"}}}
    assert reason("cluster-autoscaler", *pods, guarded) is None


@pytest.mark.parametrize(
    ("policy", "removable"),
    [pytest.param("Ignore", False, id="counts as a domain"), pytest.param("Honor", True, id="its taint is honoured")],
)
def test_cluster_autoscaler_a_drained_node_is_a_domain_of_spread_constraints(policy: str, removable: bool) -> None:
    """Three nodes, a pod each, the other two nodes hold one more pod: who must move would make the skew 2 as long as
    the drained node counts."""
    nodes = [make.node(f"n{k}", cpu="1", memory="2Gi", labels={make.HOSTNAME: f"n{k}"}) for k in range(3)]
    constraint = make.spread(make.HOSTNAME, labels={"app": "topo"}) | {"nodeTaintsPolicy": policy, "minDomains": 2}
    pods = []
    for k in range(3):
        one = pod(
            f"t{k}", labels={"app": "topo"}, requests={"cpu": "100m"}, spec={"topologySpreadConstraints": [constraint]}
        )
        one["spec"]["nodeName"] = f"n{k}"
        pods.append(one)
    blockers = [make.pod(f"b{k}", requests={"cpu": "100m"}, on=f"n{k}") for k in (1, 2)]
    report = kubesched.consolidate([*nodes, *pods, *blockers], rules="cluster-autoscaler")
    assert ("n0" in report.removed) is removable
    if not removable:
        assert {one.node: one.reason.identifier for one in report.kept}["n0"] == "NoPlaceToMovePods"


@pytest.mark.parametrize(
    ("others", "removable"),
    [
        pytest.param([], False, id="nowhere to go"),
        pytest.param([("n1", "100m")], True, id="a mostly empty node"),
        pytest.param([("n1", "1")], False, id="a full node"),
        pytest.param([("n1", "1"), ("n2", "100m")], True, id="a full and a mostly empty node"),
    ],
)
def test_cluster_autoscaler_room_for_the_pods(others: list[tuple[str, str]], removable: bool) -> None:
    nodes = [make.node(name, cpu="1", memory="2Gi") for name in ("n0", *(name for name, _ in others))]
    there = [make.pod(f"x{name}", requests={"cpu": cpu}, on=name) for name, cpu in others]
    pods = [pod(f"p{k}", requests={"cpu": "100m"}) for k in range(2)]
    report = kubesched.consolidate([*nodes, *there, *pods], rules="cluster-autoscaler")
    assert ("n0" in report.removed) is removable


NOT_READY = {"conditions": [{"type": "Ready", "status": "False"}]}
DO_NOT = 'pod has "karpenter.sh/do-not-disrupt" annotation'
BY_BUDGET = "pdb prevents pod evictions"
LABELS = {"k8s-app": "bar"}
HELD = budget("bar", allowed=0)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param([pod(metadata=PLEASE_NOT)], DO_NOT, id="do not disrupt"),
        pytest.param([pod(owner="DaemonSet", metadata=PLEASE_NOT)], DO_NOT, id="a daemon that says do not disrupt"),
        pytest.param([pod(owner="Node", metadata=PLEASE_NOT)], DO_NOT, id="a static pod that says do not disrupt"),
        pytest.param([pod(phase="Succeeded", metadata=PLEASE_NOT)], None, id="terminal, do not disrupt"),
        pytest.param([pod(metadata=PLEASE_NOT | {"deletionTimestamp": SEEN})], None, id="terminating, do not disrupt"),
        pytest.param([pod(labels=LABELS), HELD], BY_BUDGET, id="budget"),
        pytest.param([pod(owner="DaemonSet", labels=LABELS), HELD], BY_BUDGET, id="budget of a daemon"),
        pytest.param([pod(owner="Node", labels=LABELS), HELD], None, id="budget of a static pod"),
        pytest.param([pod(labels=LABELS, phase="Failed"), HELD], None, id="budget of a terminal pod"),
        pytest.param(
            [pod(labels=LABELS, metadata={"deletionTimestamp": SEEN}), HELD], None, id="budget of a terminating pod"
        ),
        pytest.param(
            [pod(labels=LABELS, spec={"tolerations": [make.toleration("karpenter.sh/disrupted")]}), HELD],
            BY_BUDGET,
            id="budget of a pod that Karpenter does not evict, but leaves to end with its machine",
        ),
        pytest.param([pod(labels=LABELS, status=NOT_READY), HELD], BY_BUDGET, id="budget of a pod not ready"),
        pytest.param(
            [pod(labels=LABELS, status=NOT_READY), budget("bar", allowed=0, policy="AlwaysAllow")],
            None,
            id="budget that lets pods go that are not ready",
        ),
        pytest.param(
            [pod(labels=LABELS), budget("bar", allowed=0, policy="AlwaysAllow")],
            BY_BUDGET,
            id="budget that would let it go if it were not ready",
        ),
        pytest.param([pod(owner="", labels=LABELS)], None, id="nobody's"),
        pytest.param([pod(spec={"volumes": THREE})], None, id="local storage"),
        pytest.param([pod(namespace="kube-system")], None, id="of the system"),
    ],
)
def test_karpenter_pods(items: list[Manifest], expected: str | None) -> None:
    assert reason("karpenter", *items) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param({"metadata": {"labels": {NODE_POOL: "default"}}}, None, id="of a pool"),
        pytest.param({}, "node isn't managed by karpenter", id="of none"),
        pytest.param(
            {"metadata": {"labels": {NODE_POOL: "default"}, "deletionTimestamp": SEEN}},
            "node is deleting or marked for deletion",
            id="deleting",
        ),
        pytest.param(
            {"metadata": {"labels": {NODE_POOL: "default"}, **PLEASE_NOT}},
            'disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
            id="do not disrupt",
        ),
    ],
)
def test_karpenter_nodes(node: Manifest, expected: str | None) -> None:
    other = make.node("other", cpu="4", memory="8Gi", labels={NODE_POOL: "default"})
    assert reason("karpenter", pod(requests={"cpu": "1"}), other, node=node) == expected


# -- Cluster Autoscaler: which of several nodes go together, which group grows -----------------------------------------


@pytest.mark.parametrize(
    ("cpus", "asked", "goes"),
    [
        pytest.param((10, 10), {}, 2, id="empty nodes, all of them"),
        pytest.param((10,), {0: [4]}, 0, id="a single node that is used"),
        pytest.param((10, 10), {0: [4], 1: [7]}, 0, id="its pod fits nowhere"),
        pytest.param((10, 20), {0: [4], 1: [15]}, 1, id="its pod fits on one that stays"),
        pytest.param((10, 10), {0: [4], 1: [4]}, 1, id="either can go, not both"),
        pytest.param((10, 10, 10), {0: [2], 1: [2], 2: [6]}, 2, id="the pods of two fit on the third"),
        pytest.param((10, 10, 10), {0: [2], 1: [3], 2: [6]}, 1, id="the pods of one fit on the third"),
        pytest.param((10, 10, 10), {0: [5], 1: [5], 2: [6]}, 1, id="of two halves, one goes to the other"),
        pytest.param((10, 10, 10), {0: [5, 1], 1: [5, 1], 2: [6]}, 0, id="all above the threshold"),
    ],
)
def test_cluster_autoscaler_several_nodes(cpus: tuple[int, ...], asked: dict[int, list[int]], goes: int) -> None:
    """As its planner's tests have them: nodes that are unneeded, pods that can be scheduled elsewhere."""
    nodes = [make.node(f"n{k}", cpu=str(cpu), memory="100Gi") for k, cpu in enumerate(cpus)]
    owners = {"ownerReferences": pod()["metadata"]["ownerReferences"]}
    pods = [
        make.pod(f"p{k}-{i}", requests={"cpu": str(cpu)}, on=f"n{k}", metadata=owners)
        for k, sizes in asked.items()
        for i, cpu in enumerate(sizes)
    ]
    report = kubesched.consolidate(
        [*nodes, *pods], policy="cluster-autoscaler", rules="cluster-autoscaler", tie_break="name"
    )
    assert len(report.removed) == goes


@pytest.mark.parametrize(
    ("groups", "chosen"),
    [
        pytest.param({"balanced": (16, 16)}, "balanced", id="the only one"),
        pytest.param({"balanced": (16, 16), "highmem": (16, 32)}, "balanced", id="less memory is left"),
        pytest.param({"balanced": (16, 16), "highmem": (16, 32), "lowcpu": (8, 16)}, "lowcpu", id="less cpu is left"),
    ],
)
def test_cluster_autoscaler_least_waste(groups: dict[str, tuple[int, int]], chosen: str) -> None:
    """Amounts are multiples of what the pod asks for: 500m and 1,000 MiB."""
    shapes = [
        {"name": name, "allocatable": {"cpu": f"{500 * cpu}m", "memory": f"{1000 * memory}Mi", "pods": "100"}}
        for name, (cpu, memory) in groups.items()
    ]
    machines = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": shapes}
    waiting = make.pod("p", requests={"cpu": "500m", "memory": "1000Mi"})
    autoscaler = kubesched.autoscaler("cluster-autoscaler", machines)
    report = kubesched.simulate([waiting], autoscaler=autoscaler, tie_break="name", until=120)
    assert report.autoscaling is not None
    assert report.autoscaling.changes[0].machine == chosen
