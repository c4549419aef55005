"""Clusters of any size for the benchmarks of planning: nodes in zones, workloads whose pods are in place already."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from kubesched.planning.catalogue import Catalogue
from kubesched.planning.catalogue_files import catalogue_in

Manifest = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
_SIZES = (("4", "16Gi"), ("8", "32Gi"), ("16", "64Gi"))
_PRICES = {"4": "0.20", "8": "0.40", "16": "0.80"}
_CPUS = (50, 100, 100, 150, 200, 250, 500)


def filled_cluster(n_nodes: int, n_pods: int, *, seed: int = 0, budgets: bool = True) -> list[Manifest]:
    """Nodes of three sizes in three zones, and Deployments whose pods run on random nodes that have room for them. Some
    spread over zones, some have a disruption budget."""
    random = Random(seed)
    nodes = [_node(number, random) for number in range(n_nodes)]
    free = [int(node["status"]["allocatable"]["cpu"]) * 1000 - 200 for node in nodes]
    memory = [int(node["status"]["allocatable"]["memory"].removesuffix("Gi")) * 1024 for node in nodes]
    objects: list[Manifest] = [*nodes, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "work"}}]
    n_made = number = 0
    while n_made < n_pods:
        number += 1
        name, replicas = f"app-{number}", min(n_pods - n_made, random.choice((2, 3, 3, 5, 8, 20, 40)))
        cpu = random.choice(_CPUS)
        asked = {"cpu": f"{cpu}m", "memory": f"{cpu * 3}Mi"}
        template = _template(name, asked, spreads=random.random() < 0.3)
        uids = f"d-{number}", f"r-{number}"
        objects.append(_workload("Deployment", name, uids[0], replicas, template))
        objects.append(
            _workload("ReplicaSet", f"{name}-1", uids[1], replicas, template, owner=("Deployment", name, uids[0]))
        )
        if budgets and random.random() < 0.3 and replicas > 1:
            spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}}
            about = {"name": name, "namespace": "work"}
            objects.append({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": about, "spec": spec})
        for place in range(replicas):
            row = _with_room(free, memory, cpu, random)
            free[row] -= cpu
            memory[row] -= cpu * 3
            objects.append(_pod(name, place, uids[1], template, nodes[row]["metadata"]["name"]))
        n_made += replicas
    return objects


def small_world(seed: int) -> tuple[list[Manifest], Catalogue]:
    """Six to twelve nodes, and machines of five sizes that could take their place."""
    random = Random(seed)
    n_nodes = random.randint(6, 12)
    cluster = filled_cluster(n_nodes, random.randint(6, 15) * n_nodes, seed=seed)
    shapes = [
        {
            "name": f"size-{cpu}",
            "allocatable": {"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "pods": "110"},
            "offers": [{"zone": zone, "capacityType": "on-demand", "price": price} for zone in "abc"],
        }
        for cpu, price in ((1, 0.06), (2, 0.11), (4, 0.20), (8, 0.40), (16, 0.80))
    ]
    record = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "currency": "USD", "shapes": shapes}
    return cluster, catalogue_in(json.dumps(record).encode(), "small world")


def _node(number: int, random: Random) -> Manifest:
    cpu, memory = random.choice(_SIZES)
    name, zone = f"node-{number}", "abc"[number % 3]
    labels = {
        "kubernetes.io/hostname": name,
        ZONE: zone,
        "node.kubernetes.io/instance-type": f"size-{cpu}",
        "karpenter.sh/nodepool": "workers",
        "karpenter.sh/capacity-type": "on-demand",
    }
    about = {"name": name, "labels": labels, "annotations": {"kubesched.dev/price": _PRICES[cpu]}}
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": ready}
    return {"apiVersion": "v1", "kind": "Node", "metadata": about, "status": status}


def _template(name: str, asked: dict[str, str], *, spreads: bool) -> Manifest:
    spec: Manifest = {"containers": [{"name": "c", "image": "i", "resources": {"requests": asked}}]}
    if spreads:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 3,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": name}},
            }
        ]
    return {"metadata": {"labels": {"app": name}}, "spec": spec}


def _workload(
    kind: str, name: str, uid: str, replicas: int, template: Manifest, owner: tuple[str, str, str] | None = None
) -> Manifest:
    about: Manifest = {"name": name, "namespace": "work", "uid": uid}
    if owner is not None:
        about["ownerReferences"] = [_reference(*owner)]
    spec = {"replicas": replicas, "selector": {"matchLabels": template["metadata"]["labels"]}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": about, "spec": spec}


def _reference(kind: str, name: str, uid: str) -> Manifest:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def _pod(workload: str, number: int, uid: str, template: Manifest, node: str) -> Manifest:
    about = {
        "name": f"{workload}-1-{number}",
        "namespace": "work",
        "uid": f"p-{workload}-{number}",
        "labels": template["metadata"]["labels"],
        "ownerReferences": [_reference("ReplicaSet", f"{workload}-1", uid)],
    }
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about,
        "spec": {**template["spec"], "nodeName": node},
        "status": status,
    }


def _with_room(free: list[int], memory: list[int], cpu: int, random: Random) -> int:
    for _ in range(50):
        row = random.randrange(len(free))
        if free[row] >= cpu and memory[row] >= cpu * 3:
            return row
    return max(range(len(free)), key=lambda place: free[place])
