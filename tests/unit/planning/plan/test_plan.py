"""What a plan respects: rules of pods, daemons, volumes, zones, pools, limits; and published numbers of nodes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from plan_oracle import catalogue, pod, shape

import kubesched
from kubesched.k8s.loaded_cluster import read_objects
from kubesched.k8s.model.resource import ResourceSlice
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.planning.catalogue_files import catalogue_from
from kubesched.planning.headroom import HeadroomError
from kubesched.planning.plan import patterns
from kubesched.planning.plan.planner import Planner, PlanWatch
from kubesched.planning.plan.request import PlanRequest, percent_of
from kubesched.scheduler.plugin_loading import assemble
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.testing import make
from kubesched.testing.make import Manifest

SMALL = shape("small", 2, 8, 1.0)
LARGE = shape("large", 8, 32, 3.5)


def bought(report: kubesched.PlanReport) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in report.mix:
        counts[one.shape] = counts.get(one.shape, 0) + one.count
    return counts


def deployment(name: str, replicas: int, spec: Manifest) -> Manifest:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def container(cpu: str, memory: str = "128Mi") -> Manifest:
    return {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}


def test_the_cheapest_mix_is_proven() -> None:
    report = kubesched.plan([pod(f"p{n}", 1000) for n in range(10)], catalogue(SMALL, LARGE), from_scratch=True)
    assert (report.answer, report.level, report.verified) == ("yes", "proven", "scheduler")
    assert bought(report) == {"large": 1, "small": 1}
    assert report.cost == report.bound == 4_500_000_000
    assert str(report).splitlines()[0] == (
        "Buy 2 nodes for 4.5 USD an hour (3,285.00 USD a month): the scheduler places all 10 pods."
    )
    assert {key for node in report.nodes for key in node.pods} == {f"default/p{n}" for n in range(10)}


def test_room_on_nodes_that_are_there_comes_first() -> None:
    there = make.node("there", cpu="4", memory="16Gi")
    pods = [pod(f"p{n}", 1000) for n in range(4)]
    assert str(kubesched.plan([there, *pods], catalogue(SMALL))).startswith("Buy nothing: all 4 pods have room")
    report = kubesched.plan([there, *pods, pod("p4", 1000), pod("p5", 1000)], catalogue(SMALL))
    assert (bought(report), report.level) == ({"small": 1}, "proven")


def test_daemons_take_their_room_first() -> None:
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [container("1")]}},
        },
    }
    report = kubesched.plan([daemon_set, *(pod(f"p{n}", 1000) for n in range(2))], catalogue(SMALL), from_scratch=True)
    assert bought(report) == {"small": 2}
    assert report.nodes[0].requested["cpu"] == 2000
    tiny = shape("tiny", 1, 4, 0.1)
    tiny["allocatable"] = {"cpu": "500m", "memory": "4Gi", "pods": 20}
    again = kubesched.plan([daemon_set, pod("p", 100)], catalogue(tiny, SMALL), from_scratch=True)
    assert bought(again) == {"small": 1}


def test_pods_that_keep_away_from_each_other_need_a_node_each() -> None:
    spec = {
        "containers": [container("100m")],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    make.affinity_term("kubernetes.io/hostname", {"app": "db"})
                ]
            }
        },
    }
    report = kubesched.plan([deployment("db", 4, spec)], catalogue(SMALL, LARGE), from_scratch=True)
    assert (bought(report), report.level) == ({"small": 4}, "proven")


def test_host_ports_and_node_selectors() -> None:
    gpu = shape("gpu", 4, 16, 9.0, labels={"accelerator": "yes"}, taints=[{"key": "gpu", "effect": "NoSchedule"}])
    wants = {"nodeSelector": {"accelerator": "yes"}, "tolerations": [make.toleration("gpu")]}
    pods = [pod(f"web{n}", 100, host_ports=[80]) for n in range(3)]
    report = kubesched.plan([*pods, pod("train", 1000, spec=wants)], catalogue(SMALL, gpu), from_scratch=True)
    assert bought(report) == {"small": 3, "gpu": 1}
    assert report.level == "proven"


def test_volume_limits_of_new_nodes_count() -> None:
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "disk"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    objects: list[Manifest] = [storage_class]
    for n in range(4):
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"data{n}", "namespace": "default"},
            "spec": {
                "storageClassName": "disk",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"data{n}"}}
        objects += [claim, pod(f"p{n}", 100, spec={"volumes": [volume]})]
    free = kubesched.plan(objects, catalogue(SMALL), from_scratch=True)
    assert bought(free) == {"small": 1}
    limited = kubesched.plan(objects, catalogue({**SMALL, "volumeLimits": {"disk.example.com": 2}}), from_scratch=True)
    assert (bought(limited), limited.level) == ({"small": 2}, "proven")


GPU = {
    **shape("gpu", 4, 16, 3.0),
    "devices": [{"driver": "gpu.example.com", "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}],
}


def device_objects() -> list[Manifest]:
    by_driver = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpus"}}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpus"},
            "spec": {"selectors": [by_driver]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one-gpu", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        },
    ]


USES_GPU = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}


@pytest.mark.parametrize("is_of_a_workload", [False, True])
def test_devices_of_new_nodes_count(is_of_a_workload: bool) -> None:
    """Two a machine, for five pods; and a pod that needs none goes to the cheap one, if there is no room left."""
    if is_of_a_workload:
        pods = [deployment("train", 5, {"containers": [container("100m")], **USES_GPU})]
    else:
        pods = [pod(f"train{n}", 100, spec=USES_GPU) for n in range(5)]
    report = kubesched.plan([*device_objects(), *pods], catalogue(SMALL, GPU), from_scratch=True)
    assert (bought(report), report.level, report.n_pods) == ({"gpu": 3}, "proven", 5)
    slices = [item for item in report.new_objects if isinstance(item, ResourceSlice)]
    assert [one.spec.node_name for one in slices] == [node.name for node in report.nodes]


def test_devices_that_anybody_can_reach_count_for_no_machine() -> None:
    """The cluster has devices that any node can use: a machine without its own holds the pods as well."""
    pool = {"name": "shared", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{n}"} for n in range(5)]
    shared = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "shared"},
        "spec": {"driver": "gpu.example.com", "pool": pool, "allNodes": True, "devices": devices},
    }
    pods = [pod(f"train{n}", 100, spec=USES_GPU) for n in range(5)]
    report = kubesched.plan([*device_objects(), shared, *pods], catalogue(SMALL, GPU), from_scratch=True)
    assert (bought(report), report.level) == ({"small": 1}, "proven")


def test_a_dump_with_allocated_devices_is_bought_anew() -> None:
    """From scratch, claims are allocated no more, and the devices of nodes that were there are gone."""
    old = make.node("old", cpu="4", memory="16Gi")
    published = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "old-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "old",
            "pool": {"name": "old", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    }
    device = {"request": "gpu", "driver": "gpu.example.com", "pool": "old", "device": "gpu-0"}
    on_old = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["old"]}]}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": "train", "controller": True}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "train-gpu-x", "namespace": "default", "uid": "c", "ownerReferences": [owner]},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]}},
        "status": {
            "allocation": {"devices": {"results": [device]}, "nodeSelector": {"nodeSelectorTerms": [on_old]}},
            "reservedFor": [{"resource": "pods", "name": "train", "uid": "train"}],
        },
    }
    running = pod("train", 100, on="old", spec=USES_GPU)
    running["metadata"]["uid"] = "train"
    uses = [{"name": "gpu", "resourceClaimName": "train-gpu-x"}]
    running["status"] = {"phase": "Running", "resourceClaimStatuses": uses}
    objects = [old, published, *device_objects(), claim, running]
    report = kubesched.plan(objects, catalogue(SMALL, GPU), from_scratch=True)
    assert (bought(report), report.level) == ({"gpu": 1}, "proven")


def zoned(*zones: str) -> dict[str, Any]:
    offers = [{"zone": zone, "price": 1.0} for zone in zones]
    return {"name": "small", "allocatable": {"cpu": 2, "memory": "8Gi", "pods": 20}, "offers": offers}


def test_a_plan_that_survives_a_zone_leaves_room_in_the_others() -> None:
    web = deployment("web", 4, {"containers": [container("1")]})
    plain = kubesched.plan([web], catalogue(zoned("a", "b", "c")), from_scratch=True)
    assert plain.n_nodes == 2
    report = kubesched.plan([web], catalogue(zoned("a", "b", "c")), from_scratch=True, survive="zone")
    assert (report.n_nodes, {one.zone for one in report.mix}, report.level) == (3, {"a", "b", "c"}, "proven")
    one_more = kubesched.plan([web], catalogue(zoned("a")), from_scratch=True, survive="node")
    assert (one_more.n_nodes, one_more.level) == (3, "proven")
    nowhere = kubesched.plan([web], catalogue(zoned("a")), from_scratch=True, survive="zone")
    assert nowhere.answer == "no"


def test_literal_and_intent() -> None:
    spec = {"containers": [container("100m")]}
    spread = make.spread("kubernetes.io/hostname", labels={"app": "web"})
    web = deployment("web", 4, {**spec, "topologySpreadConstraints": [spread]})
    literal = kubesched.plan([web], catalogue(SMALL), from_scratch=True)
    assert literal.n_nodes == 1
    assert "As if an empty node stood in every zone (--spread intent): 4 nodes for 4.0 USD." in literal.notes
    intent = kubesched.plan([web], catalogue(SMALL), from_scratch=True, spread="intent")
    assert (intent.n_nodes, intent.level) == (4, "proven")


def test_zones_of_a_spread() -> None:
    spec = {"containers": [container("1")]}
    spread = make.spread("topology.kubernetes.io/zone", labels={"app": "web"})
    web = deployment("web", 6, {**spec, "topologySpreadConstraints": [spread]})
    report = kubesched.plan([web], catalogue(zoned("a", "b", "c")), from_scratch=True, spread="intent")
    assert sorted((one.zone, one.count) for one in report.mix) == [("a", 1), ("b", 1), ("c", 1)]


def test_pools_spot_shares_and_what_is_to_be_had() -> None:
    offers = [
        {"zone": "a", "capacityType": "on-demand", "price": 1.0},
        {"zone": "a", "capacityType": "spot", "price": 0.3},
    ]
    machine = {"name": "small", "allocatable": {"cpu": 2, "memory": "8Gi", "pods": 20}, "offers": offers}
    pods = [pod(f"p{n}", 1000) for n in range(20)]
    shared = kubesched.plan(pods, catalogue(machine), from_scratch=True, spot_share_percent=60)
    assert {one.capacity_type: one.count for one in shared.mix} == {"on-demand": 4, "spot": 6}
    assert shared.level == "proven"
    offers[1]["available"] = 3
    few = kubesched.plan(pods, catalogue(machine), from_scratch=True)
    assert {one.capacity_type: one.count for one in few.mix} == {"on-demand": 7, "spot": 3}
    pools = [{"name": "x", "limits": {"nodes": 2}}, {"name": "y", "labels": {"team": "y"}, "limits": {"cpu": "8"}}]
    pooled = {**catalogue(machine), "pools": pools}
    tight = kubesched.plan(pods[:12], pooled, from_scratch=True)
    in_pools: dict[str, int] = {}
    for one in tight.mix:
        in_pools[one.pool] = in_pools.get(one.pool, 0) + one.count
    assert in_pools == {"x": 2, "y": 4}
    assert kubesched.plan(pods[:4], pooled, from_scratch=True, pool="y").mix[0].pool == "y"
    least = {**catalogue(machine), "pools": [{"name": "x", "min": 3}]}
    assert kubesched.plan(pods[:2], least, from_scratch=True).n_nodes == 3


def test_headroom_kept_room_and_most_types() -> None:
    pods = [pod(f"p{n}", 1000) for n in range(4)]
    assert kubesched.plan(pods, catalogue(SMALL), from_scratch=True, headroom_percent=20).n_nodes == 4
    kept = kubesched.plan(pods, catalogue(SMALL), from_scratch=True, keep=["2x1/1Gi"])
    assert (kept.n_nodes, kept.n_pods) == (3, 4)
    assert not any("keep" in key for node in kept.nodes for key in node.pods)
    many = [pod(f"p{n}", 1000) for n in range(10)]
    one = kubesched.plan(many, catalogue(SMALL, LARGE), from_scratch=True, max_types=1)
    assert len(bought(one)) == 1


def test_pods_that_no_machine_holds_are_told_with_why() -> None:
    report = kubesched.plan([pod("huge", 64_000)], catalogue(SMALL, LARGE), from_scratch=True)
    assert (report.answer, report.mix) == ("no", ())
    assert report.unplaceable[0].reasons == {"Insufficient cpu": ["small", "large"]}
    assert "default/huge fits on no machine:" in str(report)


def test_limits_that_are_too_small() -> None:
    report = kubesched.plan([pod(f"p{n}", 1000) for n in range(10)], catalogue(SMALL), from_scratch=True, max_nodes=2)
    assert report.answer == "no"
    assert "max nodes" in str(report)
    assert "Without --max-nodes, --max-types and --spot-share: 5 nodes for 5.0 USD." in report.notes


def test_whoever_stops_it_gets_the_best_so_far() -> None:
    pods = [pod(f"p{n}", 100 + 70 * (n % 7), 200 + 300 * (n % 5)) for n in range(120)]
    request = PlanRequest(from_scratch=True, orders=1)
    assembled = assemble(GivenConfiguration.read(None, None, None, None).as_of_today().config)
    machines = catalogue_from(catalogue(SMALL, LARGE, shape("odd", 3, 9, 1.4)))
    given = load(read_objects(pods, SIMULATED_KINDS))
    asked: list[int] = []

    def pressed() -> bool:
        asked.append(1)
        return len(asked) > 6

    for stop, why in (
        (PlanWatch(60, is_interrupted=pressed), "interrupted"),
        (PlanWatch(60, clock=iter(range(0, 10_000, 12)).__next__), "time"),
    ):
        report = Planner(given, machines, request, assembled.config, assembled.registry, stop).plan()
        assert (report.answer, report.stopped, report.level) == ("yes", why, "within")
        assert "The best so far" in " ".join(str(report).split())


def test_one_node_more_can_break_a_placement() -> None:
    """Feasibility is not monotone: with a second node that cannot hold the pods, their spread has two domains."""
    spread = make.spread("kubernetes.io/hostname", labels={"app": "web"})
    pods = [pod(f"web{n}", 1000, labels={"app": "web"}, spec={"topologySpreadConstraints": [spread]}) for n in range(4)]
    big = make.node("big", cpu="8", memory="16Gi")
    tiny = make.node("tiny", cpu="1", memory="1Gi", allocatable={"cpu": "500m"})
    with kubesched.world([big, *pods]).trial() as trial:
        assert not trial.settle().pending
        trial.add_node(tiny)
    with kubesched.world([big, tiny, *pods]).trial() as trial:
        assert len(trial.settle().pending) == 3


# -- published numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cpu", "most_pods", "pods", "options", "nodes", "placed"),
    [
        pytest.param(1000, 10, [(10, 350, {})], {}, 5, 10, id="by resources"),
        pytest.param(10_000, 10, [(20, 10, {})], {}, 2, 20, id="by the number of pods"),
        pytest.param(1000, 10, [(8, 200, {"host_ports": [5555]})], {}, 8, 8, id="by host port"),
        pytest.param(1000, 10, [(20, 500, {})], {"max_nodes": 5}, 5, 10, id="limited"),
        pytest.param(1000, 10, [(10, 50, {}), (10, 500, {})], {"max_nodes": 5}, 5, 10, id="largest first"),
        pytest.param(1000, 10, [(8, 200, {"skew": 2})], {"spread": "intent"}, 4, 8, id="spread over hosts"),
        pytest.param(1000, 100, [(50_000, 50, {}), (1000, 95, {})], {"max_nodes": 3000}, 2595, 51_000, id="benchmark"),
    ],
)
def test_the_counts_of_cluster_autoscalers_estimator(
    cpu: int, most_pods: int, pods: list[Any], options: dict[str, Any], nodes: int, placed: int
) -> None:
    machine = {"name": "m", "allocatable": {"cpu": f"{cpu}m", "memory": "5000Mi", "pods": most_pods}, "price": 1}
    manifests = []
    for group, (n, milli, fields) in enumerate(pods):
        fields = dict(fields)
        skew = fields.pop("skew", 0)
        spec: Manifest = {}
        if skew:
            rule = make.spread("kubernetes.io/hostname", max_skew=skew, labels={"app": f"g{group}"})
            spec["topologySpreadConstraints"] = [rule]
        like = make.pod(f"g{group}", requests={"cpu": f"{milli}m"}, labels={"app": f"g{group}"}, spec=spec, **fields)
        for k in range(n):
            metadata = {**like["metadata"], "name": f"g{group}-{k}", "uid": f"{group}-{k}"}
            manifests.append({**like, "metadata": metadata})
    report = kubesched.plan(manifests, catalogue(machine), from_scratch=True, ideal=True, **options)
    assert (report.n_nodes, report.n_pods - len(report.pending)) == (nodes, placed)
    assert report.verified == "packing"
    if placed == report.n_pods:
        assert report.level == "proven"
    else:
        assert {key.split("-")[0] for key in report.pending} <= {"default/g0"}


@pytest.mark.parametrize(
    ("pods", "most_nodes", "nodes", "placed"),
    [
        pytest.param([(8, 500, {})], None, 0, 8, id="all have room"),
        pytest.param([(20, 500, {})], None, 3, 20, id="the others on new ones"),
        pytest.param([(20, 500, {})], 2, 2, 16, id="on as many new ones as may be"),
        pytest.param([(3, 100, {"host_ports": [80]})], None, 2, 3, id="one of a host port"),
        pytest.param([(3, 100, {"host_ports": [80]}), (3, 100, {"host_ports": [81]})], None, 2, 6, id="other ports"),
        pytest.param([(9, 10, {}), (4, 1500, {})], None, 2, 13, id="the largest first"),
    ],
)
def test_packing_alone_fills_nodes_that_are_there_first(
    pods: list[tuple[int, int, dict[str, Any]]], most_nodes: int | None, nodes: int, placed: int
) -> None:
    """A node of four cpus is there; a new one has two."""
    manifests = [pod(f"g{g}-{k}", milli, **fields) for g, (n, milli, fields) in enumerate(pods) for k in range(n)]
    old = make.node("old", cpu="4", memory="16Gi")
    report = kubesched.plan([old, *manifests], catalogue(shape("two", 2, 8, 1.0)), ideal=True, max_nodes=most_nodes)
    assert (report.n_nodes, report.n_pods - len(report.pending)) == (nodes, placed)
    assert report.answer == ("yes" if placed == len(manifests) else "no")
    assert report.bound <= report.cost


# -- without the solver ------------------------------------------------------------------------------------------------


def test_without_scipy_there_is_a_plan_and_an_aggregate_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "has_solver", lambda: False)
    monkeypatch.setattr("kubesched.planning.plan.reporting.has_solver", lambda: False)
    pods = [pod(f"p{n}", 100 + 70 * (n % 7), 200 + 300 * (n % 5)) for n in range(60)]
    report = kubesched.plan(pods, catalogue(SMALL, LARGE), from_scratch=True)
    assert report.answer == "yes"
    assert report.bound_kind in ("aggregate", "integral")
    assert any("pip install '.[plan]'" in text for text in report.assumptions)


def test_a_plan_is_never_dearer_than_one_type_or_first_fit() -> None:
    """By packing alone, where both are known; the scheduler's verdict is asked of both, too."""
    chance = Random(5)
    for _ in range(5):
        sizes = [(chance.choice([200, 300, 700, 1100]), chance.choice([300, 800, 2000])) for _ in range(4)]
        pods = [pod(f"p{n}", *sizes[n % 4]) for n in range(chance.randint(20, 60))]
        machines = catalogue(SMALL, LARGE, shape("odd", 3, 9, 1.4))
        report = kubesched.plan(pods, machines, from_scratch=True)
        for name in ("small", "large", "odd"):
            alone = kubesched.plan(pods, only(machines, name), from_scratch=True)
            assert report.cost <= alone.cost
        ideal = kubesched.plan(pods, machines, from_scratch=True, ideal=True)
        assert ideal.bound <= ideal.cost <= report.cost


def only(machines: dict[str, Any], name: str) -> dict[str, Any]:
    return {**machines, "shapes": [one for one in machines["shapes"] if one["name"] == name]}


def test_the_same_input_gives_the_same_bytes() -> None:
    pods = [pod(f"p{n}", 100 + 90 * (n % 6), 300 * (1 + n % 4)) for n in range(40)]
    first, second = (
        kubesched.plan(pods, catalogue(SMALL, LARGE), from_scratch=True, alternatives=3).to_dict() for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("text", "percent"), [pytest.param("60%", 60, id="percent"), pytest.param("0.6", 60, id="fraction")]
)
def test_shares(text: str, percent: int) -> None:
    assert percent_of(text, "--spot-share") == percent


def test_room_for_what_one_zone_has_is_surviving_its_loss() -> None:
    request = PlanRequest(keep=("2x500m/1Gi", "n-1:zone"))
    assert (request.keep, request.survive) == (("2x500m/1Gi",), "zone")
    with pytest.raises(HeadroomError, match="n-1:zone or n-1:node is expected"):
        PlanRequest(keep=("n-1:rack",))


def test_mostallocated_is_told_where_it_is_cheaper() -> None:
    """Two machines, filled evenly, have no room for the large pod that comes last; filled one by one, they do."""
    pods = [*(pod(f"small-{k}", 1000, 4096) for k in range(4)), pod("large", 3000, 12288)]
    machines = catalogue(shape("four", 4, 16, 0.2))
    report = kubesched.plan(pods, machines, from_scratch=True, orders=1)
    assert (report.n_nodes, report.ideal_cost) == (3, 400_000_000)
    assert "With scoringStrategy MostAllocated: 2 nodes for 0.4 USD, 33.3 % less." in report.notes
    packed = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "scoringStrategy": {
                                "type": "MostAllocated",
                                "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                            }
                        },
                    }
                ]
            }
        ],
    }
    filled = kubesched.plan(pods, machines, from_scratch=True, orders=1, config=packed)
    assert filled.n_nodes == 2
    assert not any("MostAllocated" in note for note in filled.notes)
