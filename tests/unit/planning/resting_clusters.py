"""Small random clusters whose pods are in place: nodes in zones, Deployments, StatefulSets, daemons, pods of nobody."""

from __future__ import annotations

from random import Random
from typing import Any

Manifest = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def node(name: str, zone: str = "a", cpu: str = "4", memory: str = "16Gi", **labels: str) -> Manifest:
    about: Manifest = {"name": name, "labels": {HOSTNAME: name, ZONE: zone, **labels}}
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": ready}
    return {"apiVersion": "v1", "kind": "Node", "metadata": about, "status": status}


def priced(item: Manifest, price: str, kind: str = "") -> Manifest:
    item["metadata"].setdefault("annotations", {})["kubesched.dev/price"] = price
    if kind:
        item["metadata"]["labels"]["node.kubernetes.io/instance-type"] = kind
    return item


def reference(kind: str, name: str) -> Manifest:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}


def workload(
    kind: str, name: str, cpu: str, nodes: list[str], *, replicas: int | None = None, **spec: Any
) -> list[Manifest]:
    """A Deployment with its ReplicaSet, or another workload, and a pod on each of the nodes named."""
    labels = {"app": name}
    asked = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    pod_spec = {"containers": [{"name": "c", "image": "i", "resources": asked}], **spec}
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    whole: Manifest = {"selector": {"matchLabels": labels}, "template": template}
    if kind != "DaemonSet":
        whole["replicas"] = len(nodes) if replicas is None else replicas
    made = [_object(kind, name, whole)]
    owner, stem = reference(kind, name), name
    if kind == "Deployment":
        made.append(_object("ReplicaSet", f"{name}-1", whole, owner))
        owner, stem = reference("ReplicaSet", f"{name}-1"), f"{name}-1"
    made += [pod(f"{stem}-{n}", where, pod_spec, labels, owner) for n, where in enumerate(nodes)]
    return made


def _object(kind: str, name: str, spec: Manifest, owner: Manifest | None = None) -> Manifest:
    about: Manifest = {"name": name, "namespace": "default", "uid": f"{kind}-{name}"}
    if owner is not None:
        about["ownerReferences"] = [owner]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": about, "spec": spec}


def pod(
    name: str, where: str, spec: Manifest, labels: dict[str, str] | None = None, owner: Manifest | None = None
) -> Manifest:
    about: Manifest = {"name": name, "namespace": "default", "uid": f"pod-{name}", "labels": labels or {}}
    if owner is not None:
        about["ownerReferences"] = [owner]
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {**spec, "nodeName": where}, "status": status}


def budget(name: str, **spec: Any) -> Manifest:
    """For the workload of this name."""
    about = {"name": name, "namespace": "default"}
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": about,
        "spec": {"selector": selector, **spec},
    }


def spread(name: str, key: str = ZONE, skew: int = 1) -> list[Manifest]:
    return [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": name}},
        }
    ]


def apart(name: str) -> Manifest:
    """No two on one node."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": name}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def random_cluster(random: Random, *, budgets: bool = False, fill: float = 0.8, prices: bool = False) -> list[Manifest]:
    """Everything is placed with room for it; how full the nodes are differs."""
    sizes = {"2": "0.11", "4": "0.20", "8": "0.38"}
    nodes = []
    for number in range(random.randint(3, 8)):
        cpu = random.choice(list(sizes))
        made = node(f"n{number}", random.choice("abc"), cpu, f"{int(cpu) * 4}Gi")
        nodes.append(priced(made, sizes[cpu], f"size-{cpu}") if prices else made)
    free = {one["metadata"]["name"]: int(one["status"]["allocatable"]["cpu"]) * 1000 for one in nodes}
    room = {name: int(amount * random.uniform(0.1, fill)) for name, amount in free.items()}
    objects = list(nodes)
    for number in range(random.randint(2, 7)):
        name, milli = f"app{number}", random.choice((100, 250, 500, 1000))
        kind = random.choice(("Deployment", "Deployment", "Deployment", "StatefulSet"))
        wanted, is_apart = random.randint(1, 6), random.random() < 0.2
        places = []
        for _ in range(wanted):
            fitting = [n for n, left in room.items() if left >= milli and not (is_apart and n in places)]
            if fitting:
                places.append(random.choice(fitting))
                room[places[-1]] -= milli
        spec: Manifest = {}
        if is_apart:
            spec["affinity"] = apart(name)
        if random.random() < 0.25:
            spec["topologySpreadConstraints"] = spread(name, random.choice((ZONE, HOSTNAME)), random.choice((1, 2)))
        if places:
            objects += workload(kind, name, f"{milli}m", places, **spec)
            if budgets and random.random() < 0.6:
                limit = random.choice(({"maxUnavailable": 1}, {"minAvailable": 1}, {"minAvailable": "50%"}))
                objects.append(budget(name, **limit))
    return objects
