"""The kinds of pods, as all families of the benchmarks have them: each is a function that fills in one pod."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

Manifest = dict[str, Any]

NAMESPACES = {"red": "one", "green": "one", "blue": "two"}
"""With the value of their label `team`."""
ZONES = ("zone-a", "zone-b", "zone-c", "zone-d")
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
DISK, DEDICATED = "example.com/disk", "example.com/dedicated"
WIDGET = "example.com/widget"
IMAGES = tuple(f"registry.example.com/app-{number}:v1" for number in range(12))
DEVICE_CLASS, DRIVER = "gpu.example.com", "gpu.example.com"
PRIORITIES = {"low": 10, "middle": 100, "high": 1_000, "highest": 10_000}
LOCAL, PROVISIONED, CSI_DRIVER = "local", "provisioned", "csi.example.com"
N_APPS = 12


@dataclass(slots=True)
class Wanted:
    """A pod to be made, and what has to be there before it."""

    kind: str
    pod: Manifest
    first: list[Manifest] = field(default_factory=list)

    @property
    def spec(self) -> Manifest:
        spec: Manifest = self.pod["spec"]
        return spec

    @property
    def labels(self) -> dict[str, str]:
        labels: dict[str, str] = self.pod["metadata"]["labels"]
        return labels

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    def select_self(self) -> Manifest:
        return {"matchLabels": {"app": self.labels["app"]}}


@dataclass(slots=True)
class PodMaker:
    """`seed` decides everything."""

    dice: Random
    nodes: Callable[[], list[str]]
    """Names of those that there are."""
    n_made: int = 0

    def make(self, kind: str = "", *, cpu: str = "", priority: str = "") -> Wanted:
        """Of this kind, or of the next one by turns."""
        names = tuple(KINDS)
        kind = kind or names[self.n_made % len(names)]
        self.n_made += 1
        dice = self.dice
        requests = {"cpu": cpu or f"{dice.choice((50, 100, 200, 350))}m", "memory": f"{dice.choice((64, 128, 300))}Mi"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"p{self.n_made:05d}-{kind}",
                "namespace": dice.choice(tuple(NAMESPACES)),
                "labels": {"app": f"{kind}-{dice.randrange(3)}", "group": f"g{dice.randrange(N_APPS)}"},
            },
            "spec": {
                "terminationGracePeriodSeconds": 5,
                "containers": [{"name": "main", "image": dice.choice(IMAGES), "resources": {"requests": requests}}],
            },
        }
        wanted = Wanted(kind, pod)
        KINDS[kind](wanted, self)
        if priority:
            wanted.spec["priorityClassName"] = priority
        return wanted

    def node(self) -> str:
        return self.dice.choice(self.nodes())


Fill = Callable[[Wanted, PodMaker], None]


def _requests(wanted: Wanted) -> dict[str, str]:
    requests: dict[str, str] = wanted.spec["containers"][0]["resources"]["requests"]
    return requests


# -- plain -------------------------------------------------------------------------------------------------------------


def plain(_: Wanted, __: PodMaker) -> None:
    """Requests, and nothing else."""


def large(wanted: Wanted, _: PodMaker) -> None:
    _requests(wanted).update(cpu="1500m", memory="2Gi")


def best_effort(wanted: Wanted, _: PodMaker) -> None:
    wanted.spec["containers"][0]["resources"] = {}


def with_init_containers(wanted: Wanted, _: PodMaker) -> None:
    init = {"name": "init", "image": IMAGES[0], "resources": {"requests": {"cpu": "600m"}}}
    sidecar = {"name": "sidecar", "image": IMAGES[1], "restartPolicy": "Always"}
    sidecar["resources"] = {"requests": {"cpu": "50m", "memory": "32Mi"}}  # type: ignore[assignment]
    wanted.spec["initContainers"] = [sidecar, init]


def extended_resource(wanted: Wanted, _: PodMaker) -> None:
    resources = wanted.spec["containers"][0]["resources"]
    resources["requests"][WIDGET] = "1"
    resources["limits"] = {WIDGET: "1"}


def many_images(wanted: Wanted, maker: PodMaker) -> None:
    more = maker.dice.sample(IMAGES, 3)
    wanted.spec["containers"] += [{"name": f"more-{place}", "image": image} for place, image in enumerate(more)]


# -- nodes -------------------------------------------------------------------------------------------------------------


def node_selector(wanted: Wanted, _: PodMaker) -> None:
    wanted.spec["nodeSelector"] = {DISK: "ssd"}


def _node_affinity(wanted: Wanted, **terms: Any) -> None:
    wanted.spec.setdefault("affinity", {}).setdefault("nodeAffinity", {}).update(terms)


def _in(key: str, *values: str, operator: str = "In") -> Manifest:
    return {"key": key, "operator": operator, "values": list(values)}


def node_affinity(wanted: Wanted, maker: PodMaker) -> None:
    zones = maker.dice.sample(ZONES, 2)
    terms = [{"matchExpressions": [_in(ZONE, *zones), _in(DISK, "hdd", operator="NotIn")]}]
    _node_affinity(wanted, requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": terms})


def preferred_node_affinity(wanted: Wanted, maker: PodMaker) -> None:
    terms = [
        {"weight": 30, "preference": {"matchExpressions": [_in(ZONE, maker.dice.choice(ZONES))]}},
        {"weight": 7, "preference": {"matchExpressions": [_in(DISK, "nvme")]}},
    ]
    _node_affinity(wanted, preferredDuringSchedulingIgnoredDuringExecution=terms)


def daemon(wanted: Wanted, maker: PodMaker) -> None:
    """As the controller of DaemonSets makes them: for one node, whatever its taints."""
    terms = [{"matchFields": [_in("metadata.name", maker.node())]}]
    _node_affinity(wanted, requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": terms})
    wanted.spec["tolerations"] = [{"operator": "Exists"}]


def tolerating(wanted: Wanted, _: PodMaker) -> None:
    wanted.spec["tolerations"] = [{"key": DEDICATED, "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
    wanted.spec["nodeSelector"] = {DEDICATED: "batch"}


def tolerating_all(wanted: Wanted, _: PodMaker) -> None:
    wanted.spec["tolerations"] = [{"operator": "Exists"}]


# -- other pods --------------------------------------------------------------------------------------------------------


def _pod_affinity(wanted: Wanted, name: str, how: str, *terms: Manifest) -> None:
    wanted.spec.setdefault("affinity", {}).setdefault(name, {})[f"{how}DuringSchedulingIgnoredDuringExecution"] = [
        *terms
    ]


def _term(wanted: Wanted, key: str, **more: Any) -> Manifest:
    return {"topologyKey": key, "labelSelector": wanted.select_self(), **more}


def affinity(wanted: Wanted, _: PodMaker) -> None:
    _pod_affinity(wanted, "podAffinity", "required", _term(wanted, ZONE))


def affinity_to_others(wanted: Wanted, maker: PodMaker) -> None:
    others = {"matchLabels": {"group": f"g{maker.dice.randrange(N_APPS)}"}}
    _pod_affinity(wanted, "podAffinity", "required", {"topologyKey": ZONE, "labelSelector": others})


def preferred_affinity(wanted: Wanted, _: PodMaker) -> None:
    _pod_affinity(
        wanted,
        "podAffinity",
        "preferred",
        {"weight": 40, "podAffinityTerm": _term(wanted, ZONE)},
        {"weight": 5, "podAffinityTerm": _term(wanted, HOSTNAME)},
    )


def anti_affinity(wanted: Wanted, _: PodMaker) -> None:
    _pod_affinity(wanted, "podAntiAffinity", "required", _term(wanted, HOSTNAME))


def preferred_anti_affinity(wanted: Wanted, _: PodMaker) -> None:
    _pod_affinity(wanted, "podAntiAffinity", "preferred", {"weight": 60, "podAffinityTerm": _term(wanted, HOSTNAME)})


def anti_affinity_by_zone(wanted: Wanted, _: PodMaker) -> None:
    _pod_affinity(wanted, "podAntiAffinity", "preferred", {"weight": 25, "podAffinityTerm": _term(wanted, ZONE)})


def affinity_across_namespaces(wanted: Wanted, _: PodMaker) -> None:
    everywhere = _term(wanted, ZONE, namespaceSelector={"matchLabels": {"team": "one"}})
    _pod_affinity(wanted, "podAffinity", "preferred", {"weight": 50, "podAffinityTerm": everywhere})


def anti_affinity_across_namespaces(wanted: Wanted, _: PodMaker) -> None:
    everywhere = _term(wanted, HOSTNAME, namespaceSelector={"matchLabels": {"team": "one"}})
    _pod_affinity(wanted, "podAntiAffinity", "required", everywhere)


# -- spreading ---------------------------------------------------------------------------------------------------------


def _spread(wanted: Wanted, key: str, when: str, skew: int = 1, **more: Any) -> None:
    wanted.spec.setdefault("topologySpreadConstraints", []).append(
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "labelSelector": wanted.select_self(),
            **more,
        }
    )


def spread_by_zone(wanted: Wanted, _: PodMaker) -> None:
    _spread(wanted, ZONE, "DoNotSchedule", 2)


def spread_by_node(wanted: Wanted, _: PodMaker) -> None:
    _spread(wanted, HOSTNAME, "DoNotSchedule", 2, nodeTaintsPolicy="Honor")


def preferred_spread(wanted: Wanted, _: PodMaker) -> None:
    _spread(wanted, ZONE, "ScheduleAnyway", 1)
    _spread(wanted, HOSTNAME, "ScheduleAnyway", 3)


def spread_over_domains(wanted: Wanted, _: PodMaker) -> None:
    _spread(wanted, ZONE, "DoNotSchedule", 3, minDomains=len(ZONES))


def spread_by_revision(wanted: Wanted, maker: PodMaker) -> None:
    wanted.labels["revision"] = f"r{maker.dice.randrange(2)}"
    _spread(wanted, ZONE, "ScheduleAnyway", 1, matchLabelKeys=["revision"])


# -- ports, volumes, devices -------------------------------------------------------------------------------------------


def host_port(wanted: Wanted, maker: PodMaker) -> None:
    port = 9_000 + maker.dice.randrange(4)
    wanted.spec["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]


def host_port_of_one_address(wanted: Wanted, _: PodMaker) -> None:
    port = {"containerPort": 9_500, "hostPort": 9_500, "protocol": "UDP", "hostIP": "127.0.0.1"}
    wanted.spec["containers"][0]["ports"] = [port]


def _use_claim(wanted: Wanted, storage_class: str) -> Manifest:
    claim: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{wanted.name}-data", "namespace": wanted.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    wanted.first.append(claim)
    wanted.spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}]
    return claim


def volume(wanted: Wanted, claim: Manifest, source: Manifest, storage_class: str, terms: list[Manifest]) -> Manifest:
    """For this claim."""
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{wanted.name}-volume"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": storage_class,
            "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **metadata},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}},
            **source,
        },
    }


def volume_bound_early(wanted: Wanted, maker: PodMaker) -> None:
    """Of a CSI driver, of which a node can hold only so many."""
    claim = _use_claim(wanted, "")
    claim["spec"]["volumeName"] = f"{wanted.name}-volume"
    source = {"csi": {"driver": CSI_DRIVER, "volumeHandle": wanted.name}}
    wanted.first.append(volume(wanted, claim, source, "", [_in(ZONE, maker.dice.choice(ZONES))]))


def volume_bound_late(wanted: Wanted, maker: PodMaker) -> None:
    """One of those that there are, on some node."""
    claim = _use_claim(wanted, LOCAL)
    for place in range(2):
        one = volume(wanted, claim, {"local": {"path": "/data"}}, LOCAL, [_in(HOSTNAME, maker.node())])
        one["metadata"]["name"] = f"{wanted.name}-volume-{place}"
        del one["spec"]["claimRef"]
        wanted.first.append(one)


def volume_provisioned(wanted: Wanted, _: PodMaker) -> None:
    _use_claim(wanted, PROVISIONED)


def _use_device(wanted: Wanted, **request: Any) -> None:
    exactly = {"deviceClassName": DEVICE_CLASS, **request}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"{wanted.name}-device", "namespace": wanted.namespace},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
    wanted.first.append(claim)
    wanted.spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"{wanted.name}-device"}]
    wanted.spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]


def device(wanted: Wanted, _: PodMaker) -> None:
    _use_device(wanted)


def device_by_expression(wanted: Wanted, _: PodMaker) -> None:
    expression = f'device.attributes["{DRIVER}"].model == "large"'
    _use_device(wanted, selectors=[{"cel": {"expression": expression}}])


# -- queue -------------------------------------------------------------------------------------------------------------


def gated(wanted: Wanted, _: PodMaker) -> None:
    wanted.spec["schedulingGates"] = [{"name": "example.com/wait"}]


def urgent(wanted: Wanted, _: PodMaker) -> None:
    wanted.spec["priorityClassName"] = "high"


def urgent_but_patient(wanted: Wanted, _: PodMaker) -> None:
    wanted.spec["priorityClassName"] = "patient"


KINDS: dict[str, Fill] = {
    "plain": plain,
    "large": large,
    "best-effort": best_effort,
    "init": with_init_containers,
    "widget": extended_resource,
    "images": many_images,
    "node-selector": node_selector,
    "node-affinity": node_affinity,
    "node-preferred": preferred_node_affinity,
    "daemon": daemon,
    "tolerating": tolerating,
    "tolerating-all": tolerating_all,
    "affinity": affinity,
    "affinity-others": affinity_to_others,
    "affinity-preferred": preferred_affinity,
    "anti": anti_affinity,
    "anti-preferred": preferred_anti_affinity,
    "anti-zone": anti_affinity_by_zone,
    "affinity-ns": affinity_across_namespaces,
    "anti-ns": anti_affinity_across_namespaces,
    "spread-zone": spread_by_zone,
    "spread-node": spread_by_node,
    "spread-preferred": preferred_spread,
    "spread-domains": spread_over_domains,
    "spread-revision": spread_by_revision,
    "port": host_port,
    "port-address": host_port_of_one_address,
    "volume-early": volume_bound_early,
    "volume-late": volume_bound_late,
    "volume-made": volume_provisioned,
    "device": device,
    "device-cel": device_by_expression,
    "gated": gated,
    "urgent": urgent,
    "patient": urgent_but_patient,
}
