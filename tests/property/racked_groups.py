"""Random clusters of a few racks, and groups that have to go to one of them: with everything by which pods of a group
may get into each other's way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.k8s.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_CLUSTER_WIDE = (Node, StorageClass, PersistentVolume, CSINode)
_ONCE = "requiredDuringSchedulingIgnoredDuringExecution"
_BOUND = {"pv.kubernetes.io/bind-completed": "true"}


@dataclass
class RackedCluster:
    there: list[KubeObject] = field(default_factory=list)
    groups: list[tuple[KubeObject, list[KubeObject]]] = field(default_factory=list)
    """Each PodGroup with its pods; they come one group after another."""


def racked_cluster(seed: int) -> RackedCluster:
    random = Random(seed)
    made = RackedCluster()
    names = _add_nodes(made, random)
    _add_volumes(made, random)
    for number in range(random.randint(0, 2 * len(names))):
        made.there.append(_running(f"running-{number}", random.choice(names), random))
    for name in ("g0", "g1")[: random.randint(1, 2)]:
        _add_group(made, name, random)
    return made


def _object(kind: type[KubeObject], name: str, labels: dict[str, str] | None = None, **fields: Any) -> KubeObject:
    annotations = fields.pop("annotations", None)
    namespace = "" if issubclass(kind, _CLUSTER_WIDE) else "d"
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}}
    return msgspec.convert({"metadata": {**metadata, "annotations": annotations}, **fields}, kind)


def _add_nodes(made: RackedCluster, random: Random) -> list[str]:
    names: list[str] = []
    zones_cross_racks, n_zones = random.random() < 0.5, random.choice([2, 3])
    for rack in range(random.randint(3, 6)):
        for _ in range(random.randint(1, 5)):
            number = len(names)
            zone = (number if zones_cross_racks else rack) % n_zones
            labels = {"rack": f"r{rack}", ZONE: f"z{zone}", HOST: f"n{number}", "row": f"w{random.randint(0, 2)}"}
            labels["disk"] = random.choice(["ssd", "hdd"])
            labels = {key: value for key, value in labels.items() if random.random() < 0.93}
            amounts = {"cpu": str(random.randint(1, 7)), "memory": f"{random.randint(2, 16)}Gi"}
            amounts |= {"pods": random.choice(["2", "4", "110"]), "example.com/gpu": random.choice(["0", "2"])}
            effect = random.choice(["NoSchedule", "PreferNoSchedule"])
            taints = [{"key": "t", "effect": effect}] if random.random() < 0.15 else []
            name = f"n{number}"
            names.append(name)
            made.there.append(_object(Node, name, labels, spec={"taints": taints}, status={"allocatable": amounts}))
            if random.random() < 0.4:
                driver = {"name": "csi.example.com", "nodeID": "x", "allocatable": {"count": random.randint(1, 3)}}
                made.there.append(_object(CSINode, name, spec={"drivers": [driver]}))
    return names


def _add_volumes(made: RackedCluster, random: Random) -> None:
    for name, provisioner in (("late", "csi.example.com"), ("static", "kubernetes.io/no-provisioner")):
        late: dict[str, Any] = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        made.there.append(_object(StorageClass, name, **late))
    for number in range(random.randint(0, 5)):
        made.there.append(_volume(f"free-{number}", random.choice(["static", "static", "late"]), random))


def _volume(name: str, storage_class: str, random: Random, claim: str = "") -> KubeObject:
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "csi.example.com", "volumeHandle": name},
        "storageClassName": storage_class,
    }
    if random.random() < 0.5:
        in_zones = {"key": ZONE, "operator": "In", "values": ["z0", "z1"]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [in_zones]}]}}
    if claim:
        spec["claimRef"] = {"namespace": "d", "name": claim, "uid": f"uid-{claim}"}
    return _object(PersistentVolume, name, spec=spec, status={"phase": "Bound" if claim else "Available"})


def _running(name: str, node_name: str, random: Random) -> KubeObject:
    spec: dict[str, Any] = {"nodeName": node_name}
    if random.random() < 0.2:
        spec["affinity"] = {"podAntiAffinity": {_ONCE: [_term(random, random.choice(["g0", "g1"]))]}}
    labels = {"g": random.choice(["g0", "g1", "other"]), "role": random.choice("ab")}
    return _pod(name, labels, {"cpu": random.choice(["500m", "1", "2"])}, spec, _port(random, 0.2))


def _port(random: Random, share: float) -> int:
    return random.choice([80, 81]) if random.random() < share else 0


def _pod(name: str, labels: dict[str, str], requests: dict[str, str], spec: dict[str, Any], port: int) -> KubeObject:
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": requests}}
    if port:
        container["ports"] = [{"containerPort": 1, "hostPort": port}]
    return _object(Pod, name, labels, spec={"containers": [container], **spec})


def _term(random: Random, name: str) -> dict[str, Any]:
    selectors: list[dict[str, Any]] = [{"matchLabels": {"g": name}}] * 3
    selectors += [{"matchLabels": {"role": random.choice("ab")}}]
    return {"labelSelector": random.choice(selectors), "topologyKey": random.choice([HOST, HOST, ZONE, "rack", "row"])}


def _constraints(random: Random, name: str) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(random.choice([1, 1, 2, 3])):
        key = random.choice([HOST, ZONE, ZONE, "rack", "row"])
        when = random.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])
        selector = random.choice([{"matchLabels": {"g": name}}, {"matchLabels": {"role": "a"}}, {}])
        one: dict[str, Any] = {"maxSkew": random.randint(1, 3), "topologyKey": key, "whenUnsatisfiable": when}
        one["labelSelector"] = selector
        if when == "DoNotSchedule" and random.random() < 0.2:
            one["minDomains"] = random.randint(1, 4)
        if random.random() < 0.15:
            one["nodeTaintsPolicy"] = "Honor"
        found[key, when] = one
    return list(found.values())


def _affinity(random: Random, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, share in (("podAntiAffinity", 0.35), ("podAffinity", 0.2)):
        if random.random() < share:
            found[kind] = {_ONCE: [_term(random, name) for _ in range(random.choice([1, 1, 2]))]}
    return found


def _add_group(made: RackedCluster, name: str, random: Random) -> None:
    n = random.randint(2, 7)
    sizes = random.choice([["1"] * n, ["500m", "1500m"] * n, [f"{400 + 137 * place}m" for place in range(n)]])
    has_own_labels, has_odd_ones = random.random() < 0.25, random.random() < 0.25
    spec: dict[str, Any] = {"schedulingGroup": {"podGroupName": name}}
    if affinity := _affinity(random, name):
        spec["affinity"] = affinity
    if random.random() < 0.4:
        spec["topologySpreadConstraints"] = _constraints(random, name)
    if random.random() < 0.4:
        spec["tolerations"] = [{"operator": "Exists"}]
    port = _port(random, 0.15)
    claims = _claims(made, name, n, random)
    pods = []
    for place in range(n):
        labels = {"g": name, "role": "a", **({"index": str(place)} if has_own_labels else {})}
        requests, its_own = {"cpu": sizes[place], "memory": "1Gi"}, dict(spec)
        if claims:
            its_own["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claims[place]}}]
        if has_odd_ones and place == 1:
            requests["example.com/gpu"] = "1"
            labels["role"] = "b"
            its_own.pop(random.choice(["affinity", "topologySpreadConstraints", "volumes"]), None)
        pods.append(_pod(f"{name}-{place}", labels, requests, its_own, port))
    policy: dict[str, Any] = {"gang": {"minCount": random.choice([n, n, max(1, n - 1), max(1, n // 2)])}}
    if random.random() < 0.15:
        policy = {"basic": {}}
    constraints = {"topology": [{"key": "rack"}]}
    group = _object(PodGroup, name, spec={"schedulingPolicy": policy, "schedulingConstraints": constraints})
    made.groups.append((group, pods))


def _claims(made: RackedCluster, name: str, n: int, random: Random) -> Sequence[str]:
    """The claim of each pod; mostly none."""
    kind = random.choice(["late", "static", "bound", "shared", "for one pod", *["none"] * 12])
    if kind == "none":
        return ()
    is_shared, is_bound = kind in ("shared", "for one pod"), kind not in ("late", "static")
    names = [f"{name}-claim"] * n if is_shared else [f"{name}-claim-{place}" for place in range(n)]
    for claim in dict.fromkeys(names):
        mode = {"shared": "ReadWriteMany", "for one pod": "ReadWriteOncePod"}.get(kind, "ReadWriteOnce")
        storage_class = "static" if kind == "static" else "late"
        spec: dict[str, Any] = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
        spec["storageClassName"] = storage_class
        if is_bound:
            spec["volumeName"] = f"volume-of-{claim}"
            made.there.append(_volume(f"volume-of-{claim}", storage_class, random, claim))
        status = {"phase": "Bound" if is_bound else "Pending"}
        annotations = _BOUND if is_bound else None
        made.there.append(_object(PersistentVolumeClaim, claim, annotations=annotations, spec=spec, status=status))
    return names
