"""Situations of Karpenter's provisioning tests (topology, instance selection, volumes, daemons, limits, several
NodePools), typed anew: what a plan buys for them, read as Karpenter reads them (`--spread intent`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

import kubesched
from kubesched.testing import make

Manifest = dict[str, Any]
ZONE, HOSTNAME, ARCH = make.ZONE, make.HOSTNAME, "kubernetes.io/arch"
TYPE = "node.kubernetes.io/instance-type"
CAPACITY_TYPE, POOL = "karpenter.sh/capacity-type", "karpenter.sh/nodepool"
ZONES = ("test-zone-1", "test-zone-2", "test-zone-3")
APP = {"test": "test"}


def shape(
    name: str, cpu: int, price: float, *, arch: str = "amd64", zones: Sequence[str] = ZONES, pods: int = 110
) -> Manifest:
    offers = [
        {"zone": zone, "capacityType": sold, "price": round(price * share, 6)}
        for zone in zones
        for sold, share in (("spot", 0.5), ("on-demand", 1.0))
    ]
    labels = {ARCH: arch, "kubernetes.io/os": "linux"}
    allocatable = {"cpu": str(cpu), "memory": f"{2 * cpu}Gi", "pods": pods}
    return {"name": name, "allocatable": allocatable, "labels": labels, "offers": offers}


DEFAULT = shape("default-instance-type", 4, 0.4)
SMALL = shape("small-instance-type", 2, 0.2)
ARM = shape("arm-instance-type", 16, 1.6, arch="arm64")
SINGLE = shape("single-pod-instance-type", 4, 0.3, pods=1)


def requirement(key: str, *values: str, operator: str = "In", **more: Any) -> Manifest:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {}), **more}


def pool(
    name: str = "default", *requirements: Manifest, labels: Manifest | None = None, taints: Any = (), **spec: Any
) -> Manifest:
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"requirements": list(requirements), "taints": list(taints)},
    }
    about = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}}
    return {**about, "spec": {"template": template, **spec}}


def pods(n: int, cpu: str = "100m", *, prefix: str = "p", **more: Any) -> list[Manifest]:
    return [make.pod(f"{prefix}{k}", cpu=cpu, memory="64Mi", **more) for k in range(n)]


def planned(
    objects: Sequence[Manifest], *shapes: Manifest, pools: Sequence[Manifest] = (), **options: Any
) -> kubesched.PlanReport:
    machines = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": list(shapes or (DEFAULT, SMALL))}
    has_nodes = any(one["kind"] == "Node" for one in objects)
    chosen = {"from_scratch": not has_nodes, "spread": "intent", "orders": 2, "time_limit_s": 20.0, **options}
    return kubesched.plan([*objects, *(pools or [pool()])], machines, **chosen)


def skew(report: kubesched.PlanReport, key: str, *, prefix: str = "default/p") -> list[int]:
    """How many of the pods there are per value of a label of the nodes that are bought."""
    labels = {item.name: item.metadata.labels or {} for item in report.new_objects if type(item).__name__ == "Node"}
    counts = Counter(labels[node.name].get(key, "") for node in report.nodes for p in node.pods if p.startswith(prefix))
    return sorted(counts.values())


def spread_over(key: str, max_skew: int = 1, **more: Any) -> Manifest:
    return {"topologySpreadConstraints": [{**make.spread(key, max_skew=max_skew, labels=APP), **more}]}


def affinity(kind: str, key: str, labels: Manifest = APP) -> Manifest:
    terms = [make.affinity_term(key, labels)]
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


IN_TWO_ZONES = requirement(ZONE, *ZONES[:2])


@pytest.mark.parametrize(
    ("given", "pools", "key", "expected"),
    [
        pytest.param(pods(4, labels=APP, spec=spread_over(ZONE)), [], ZONE, [1, 1, 2], id="zones"),
        pytest.param(
            pods(4, labels=APP, spec=spread_over(ZONE)), [pool("p", IN_TWO_ZONES)], ZONE, [2, 2], id="zones of a pool"
        ),
        pytest.param(
            pods(4, labels=APP, spec=spread_over(ZONE)),
            [pool("p", labels={ZONE: ZONES[0]})],
            ZONE,
            [4],
            id="a pool whose label is one zone",
        ),
        pytest.param(
            pods(4, labels=APP, spec=spread_over(ZONE)),
            [pool("p", requirement(ZONE, ZONES[0])), pool("q", requirement(ZONE, ZONES[1]))],
            ZONE,
            [2, 2],
            id="zones across pools",
        ),
        pytest.param(
            pods(3, labels=APP, spec=spread_over(ZONE, minDomains=3)), [], ZONE, [1, 1, 1], id="as many as minDomains"
        ),
        pytest.param(
            pods(11, labels=APP, spec=spread_over(ZONE, minDomains=2)),
            [],
            ZONE,
            [3, 4, 4],
            id="more zones than minDomains",
        ),
        pytest.param(pods(4, labels=APP, spec=spread_over(HOSTNAME)), [], HOSTNAME, [1, 1, 1, 1], id="nodes"),
        pytest.param(pods(4, labels=APP, spec=spread_over(HOSTNAME, 4)), [], HOSTNAME, [4], id="up to maxSkew on one"),
        pytest.param(
            pods(4, labels=APP, spec=spread_over(CAPACITY_TYPE)), [], CAPACITY_TYPE, [2, 2], id="capacity types"
        ),
        pytest.param(
            pods(4, labels=APP, spec=spread_over(CAPACITY_TYPE)),
            [pool("p", requirement(CAPACITY_TYPE, "spot"))],
            CAPACITY_TYPE,
            [4],
            id="one capacity type",
        ),
        pytest.param(
            pods(10, labels=APP, spec=spread_over(ZONE) | {"nodeSelector": {ZONE: ZONES[0]}}),
            [],
            ZONE,
            [10],
            id="a node selector leaves one zone",
        ),
        pytest.param(
            pods(3, labels=APP, spec=affinity("podAntiAffinity", HOSTNAME)),
            [],
            HOSTNAME,
            [1, 1, 1],
            id="anti-affinity on the node",
        ),
        pytest.param(
            pods(3, labels=APP, spec=affinity("podAntiAffinity", ZONE)),
            [],
            ZONE,
            [1, 1, 1],
            id="anti-affinity on zones",
        ),
        pytest.param(pods(3, labels=APP, spec=affinity("podAffinity", HOSTNAME)), [], HOSTNAME, [3], id="together"),
        pytest.param(pods(10, labels=APP, spec=affinity("podAffinity", ZONE)), [], ZONE, [10], id="in one zone"),
    ],
)
def test_where_karpenter_would_launch(
    given: list[Manifest], pools: list[Manifest], key: str, expected: list[int]
) -> None:
    report = planned(given, pools=pools)
    assert report.answer == "yes", report
    assert skew(report, key) == expected


WITH_PREFERENCE = {
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [requirement(ZONE, "nowhere")]}}
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("given", "pools", "answer"),
    [
        pytest.param(pods(1, spec={"nodeSelector": {"unknown": "label"}}), [], "no", id="an unknown label"),
        pytest.param(
            pods(1, spec={"nodeSelector": {"team": "a"}}), [pool(labels={"team": "a"})], "yes", id="a pool's label"
        ),
        pytest.param(
            pods(1, spec={"nodeSelector": {"team": "a"}}),
            [pool("p", requirement("team", "a", "b"))],
            "yes",
            id="a label that a pool requires",
        ),
        pytest.param(pods(1, spec={"nodeSelector": {ARCH: "arm64"}}), [], "no", id="no machine of that architecture"),
        pytest.param(pods(1, spec=WITH_PREFERENCE), [], "yes", id="a preference that nothing meets"),
        pytest.param(
            pods(1), [pool(taints=[make.taint("t", "v")])], "no", id="a taint of the pool that nobody tolerates"
        ),
        pytest.param(
            pods(1, spec={"tolerations": [make.toleration("t")]}),
            [pool(taints=[make.taint("t", "v")])],
            "yes",
            id="a tolerated taint",
        ),
        pytest.param(
            pods(1),
            [pool(taints=[make.taint("t", "v", "PreferNoSchedule")])],
            "yes",
            id="a soft taint of the only pool",
        ),
        pytest.param(pods(1), [pool(limits={"cpu": "1"})], "no", id="a limit below any machine"),
        pytest.param(pods(1), [pool(limits={"cpu": "2"})], "yes", id="a limit that a machine meets"),
        pytest.param(pods(2, "1500m"), [pool(limits={"cpu": "3"})], "no", id="room for one of two"),
        pytest.param(pods(2, "1500m"), [pool(limits={"nodes": "1", "cpu": "100"})], "yes", id="one larger node"),
        pytest.param(pods(1), [pool(replicas=2)], "no", id="a static pool that lacks no node"),
        pytest.param(pods(1, "5"), [], "no", id="larger than any machine"),
        pytest.param(pods(1, labels=APP, spec=affinity("podAffinity", HOSTNAME, {"a": "b"})), [], "no", id="nobody"),
        pytest.param(
            pods(4, labels=APP, spec=affinity("podAntiAffinity", ZONE)), [], "no", id="more than there are zones"
        ),
        pytest.param(
            pods(3, labels=APP, spec=spread_over(ZONE, minDomains=3)),
            [pool("p", IN_TWO_ZONES)],
            "no",
            id="fewer zones than minDomains",
        ),
        pytest.param(
            pods(1),
            [pool("p", requirement(TYPE, operator="Exists", minValues=2))],
            "yes",
            id="a choice of two types",
        ),
    ],
)
def test_what_karpenter_would_leave_pending(given: list[Manifest], pools: list[Manifest], answer: str) -> None:
    if any("replicas" in one["spec"] for one in pools):
        nodes = [make.node(f"static-{k}", cpu="1m", labels={POOL: "default"}) for k in range(2)]
        given = [*given, *nodes]
    assert planned(given, pools=pools).answer == answer


def daemon(cpu: str, **spec: Any) -> Manifest:
    labels = {"app": "agent"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    ports = spec.pop("ports", None)
    if ports:
        container["ports"] = ports
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    about = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "default"}}
    return {**about, "spec": {"selector": {"matchLabels": labels}, "template": template}}


@pytest.mark.parametrize(
    ("given", "pools", "expected"),
    [
        pytest.param([*pods(1, "1")], [], "small-instance-type", id="no daemon"),
        pytest.param([*pods(1, "1"), daemon("1")], [], "small-instance-type", id="it has room for its daemon"),
        pytest.param([*pods(1, "1"), daemon("1500m")], [], "default-instance-type", id="it has no room for its daemon"),
        pytest.param([*pods(1, "1"), daemon("4")], [], None, id="a daemon that leaves no room anywhere"),
        pytest.param(
            [*pods(1, "1"), daemon("1500m")],
            [pool(taints=[make.taint("t")])],
            None,
            id="nobody tolerates the taint",
        ),
        pytest.param(
            [*pods(1, "1", spec={"tolerations": [make.toleration("t")]}), daemon("1500m")],
            [pool(taints=[make.taint("t")])],
            "small-instance-type",
            id="a daemon without the toleration takes no room",
        ),
        pytest.param(
            [*pods(1, "1", spec={"tolerations": [make.toleration("t")]}), daemon("1500m", nodeSelector={"x": "y"})],
            [],
            "small-instance-type",
            id="a daemon for other nodes takes no room",
        ),
        pytest.param(
            [*pods(1, "1"), daemon("1500m", nodeSelector={"x": "y"})],
            [pool(labels={"x": "y"})],
            "default-instance-type",
            id="a daemon for nodes with the pool's label",
        ),
        pytest.param(
            [*pods(1, "100m", host_ports=[80]), daemon("100m", ports=[{"containerPort": 80, "hostPort": 80}])],
            [],
            None,
            id="a daemon has the port",
        ),
        pytest.param(
            [
                *pods(
                    1,
                    "100m",
                    host_ports=[80],
                    spec={"nodeSelector": {TYPE: SMALL["name"]}},
                ),
                daemon(
                    "100m",
                    ports=[{"containerPort": 80, "hostPort": 80}],
                    nodeSelector={TYPE: DEFAULT["name"]},
                ),
            ],
            [],
            "small-instance-type",
            id="a daemon has the port on other machines",
        ),
    ],
)
def test_room_for_daemons(given: list[Manifest], pools: list[Manifest], expected: str | None) -> None:
    report = planned(given, pools=pools)
    assert [one.shape for one in report.mix] == ([] if expected is None else [expected])
    assert report.answer == ("no" if expected is None else "yes")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "small-instance-type/spot", id="the cheapest"),
        pytest.param({"nodeSelector": {CAPACITY_TYPE: "on-demand"}}, "small-instance-type/on-demand", id="on-demand"),
        pytest.param({"nodeSelector": {ARCH: "arm64"}}, "arm-instance-type/spot", id="another architecture"),
        pytest.param(
            {"nodeSelector": {ARCH: "arm64", CAPACITY_TYPE: "on-demand", ZONE: ZONES[1]}},
            "arm-instance-type/on-demand",
            id="all at once",
        ),
    ],
)
def test_one_of_the_cheapest_instances(spec: Manifest, expected: str) -> None:
    report = planned(pods(1, spec=spec), DEFAULT, SMALL, ARM, SINGLE)
    assert [f"{one.shape}/{one.capacity_type}" for one in report.mix] == [expected]


def claim(name: str, storage_class: str = "zonal", volume: str = "") -> Manifest:
    spec: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec |= {"storageClassName": storage_class, **({"volumeName": volume} if volume else {})}
    about = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}}
    return {**about, "spec": spec, "status": {"phase": "Bound" if volume else "Pending"}}


def storage_class(*zones: str) -> Manifest:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}] if zones else []
    about = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "zonal"}}
    binding = {"provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"}
    return {**about, **binding, **({"allowedTopologies": topologies} if topologies else {})}


def bound_volume(zone: str) -> Manifest:
    terms = [{"matchExpressions": [requirement(ZONE, zone)]}]
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "zonal"}
    spec |= {"csi": {"driver": "example.com/disk", "volumeHandle": "v"}}
    spec |= {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    spec |= {"claimRef": {"namespace": "default", "name": "c", "uid": "c"}}
    metadata = {"name": "v"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Bound"},
    }


WITH_CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}
BOUND = claim("c", volume="v")
BOUND["metadata"] |= {"uid": "c", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}


@pytest.mark.parametrize(
    ("given", "pools", "zone"),
    [
        pytest.param([], [], None, id="the claim is not there"),
        pytest.param([claim("c")], [], None, id="its class is not there"),
        pytest.param([claim("c"), storage_class()], [], "any", id="any zone"),
        pytest.param([claim("c"), storage_class(ZONES[1])], [], ZONES[1], id="the zone of the class"),
        pytest.param(
            [claim("c"), storage_class(ZONES[1])],
            [pool("p", requirement(ZONE, ZONES[0]))],
            None,
            id="elsewhere",
        ),
        pytest.param([BOUND, bound_volume(ZONES[2])], [], ZONES[2], id="the zone of the volume, without its class"),
        pytest.param(
            [BOUND, bound_volume(ZONES[2]), storage_class(ZONES[1])], [], ZONES[2], id="the volume, not the class"
        ),
        pytest.param(
            [BOUND, bound_volume(ZONES[2])], [pool("p", requirement(ZONE, ZONES[0]))], None, id="a volume elsewhere"
        ),
    ],
)
def test_zones_of_volumes(given: list[Manifest], pools: list[Manifest], zone: str | None) -> None:
    report = planned([*given, *pods(1, spec=WITH_CLAIM)], pools=pools)
    found = {one.zone for one in report.mix}
    assert bool(found) is (zone is not None)
    assert zone in (None, "any") or found == {zone}


@pytest.mark.parametrize(
    ("given", "weights", "expected"),
    [
        pytest.param(pods(1), (1, 50, 100), ["third"], id="the heaviest"),
        pytest.param(pods(1), (100, 50, 1), ["first"], id="whatever their order"),
        pytest.param(pods(1, spec={"nodeSelector": {POOL: "second"}}), (1, 50, 100), ["second"], id="the one named"),
        pytest.param(
            [*pods(1), *pods(1, "8", prefix="large")], (1, 100, 50), ["first", "second"], id="the heaviest that fits"
        ),
    ],
)
def test_pools_of_several_weights(given: list[Manifest], weights: tuple[int, ...], expected: list[str]) -> None:
    """The first pool alone has large machines; the cheapest ones are of all pools."""
    large = shape("large-instance-type", 16, 1.0)
    small = requirement(TYPE, large["name"], operator="NotIn")
    pools = [
        pool("first", weight=weights[0]),
        pool("second", small, weight=weights[1]),
        pool("third", small, weight=weights[2]),
    ]
    report = planned(given, DEFAULT, SMALL, large, pools=pools, follow_weights=True)
    assert sorted(one.pool for one in report.mix) == expected


def test_the_played_karpenter_follows_weights() -> None:
    machines = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": [DEFAULT, SMALL]}
    pools = [
        {"name": "light", "weight": 1, "requirements": [requirement(TYPE, SMALL["name"])]},
        {"name": "heavy", "weight": 9, "requirements": [requirement(TYPE, DEFAULT["name"])]},
    ]
    launched = {}
    for policy in ("karpenter", "cluster-autoscaler"):
        autoscaler = kubesched.autoscaler(policy, {**machines, "pools": pools})
        report = kubesched.simulate(pods(1), autoscaler=autoscaler, tie_break="name", until=120)
        assert report.autoscaling is not None
        launched[policy] = report.autoscaling.changes[0].machine.partition("/")[0]
    assert launched == {"karpenter": "heavy", "cluster-autoscaler": "light"}
