"""Clusters and catalogues for the benchmarks of planning: made from seeds, so that everybody measures the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

from kubesched.k8s.loaded_cluster import read_objects
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.planning.catalogue import Catalogue
from kubesched.planning.catalogue_files import catalogue_from
from kubesched.planning.plan.model import PackingModel
from kubesched.planning.plan.planner import Planner, PlanWatch
from kubesched.planning.plan.reading import read_problem
from kubesched.planning.plan.report import PlanReport
from kubesched.planning.plan.request import PlanRequest, planned_world
from kubesched.planning.plan.scoring import filling_nodes
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.config.plugin_args import MOST_ALLOCATED
from kubesched.scheduler.plugin_loading import assemble, plugins_from_classes
from kubesched.simulator.loading import SIMULATED_KINDS, SimulationInput, load
from kubesched.testing import make
from kubesched.testing.make import Manifest

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
_MILLI_CPUS = (50, 100, 100, 250, 250, 500, 500, 1000, 2000, 3000)
_RATIOS = (0.5, 1, 2, 2, 4, 8)
"""GiB for a cpu."""


def pods_in_classes(n_pods: int, n_classes: int, seed: int) -> list[Manifest]:
    """Pods of so many classes, as a cluster has them: most are small, some large."""
    chance = Random(seed)
    found = []
    for c in range(n_classes):
        cpu = chance.choice(_MILLI_CPUS)
        memory = int(cpu * chance.choice(_RATIOS) * 1.024)
        labels = {"app": f"c{c}"}
        for k in range(n_pods // n_classes + (c < n_pods % n_classes)):
            amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
            owner = {**OWNER, "name": f"c{c}", "uid": f"rs-{c}"}
            found.append(make.pod(f"c{c}-{k}", requests=amounts, labels=labels, metadata={"ownerReferences": [owner]}))
    chance.shuffle(found)
    return found


def catalogue_of(n_offers: int, most_cpus: int = 64) -> Catalogue:
    """Machines of three ratios and doubling sizes in two zones, priced nearly by size."""
    chance = Random(n_offers)
    shapes: list[dict[str, Any]] = []
    sizes = [size for size in (2, 4, 8, 16, 32, 48, 64, 96) if size <= most_cpus]
    number = 0
    while sum(len(shape["offers"]) for shape in shapes) < n_offers:
        ratio, size = (2, 4, 8)[number % 3], sizes[(number // 3) % len(sizes)]
        price = round(size * (0.032 + 0.0045 * ratio) * chance.uniform(0.97, 1.08), 4)
        reserve = 80 + 10 * size
        shapes.append(
            {
                "name": f"t{number}-{ratio}x{size}",
                "allocatable": {
                    "cpu": f"{size * 1000 - reserve}m",
                    "memory": f"{size * ratio * 1024 - 300 - 20 * size}Mi",
                    "pods": 110,
                },
                "offers": [{"zone": zone, "price": price} for zone in ("a", "b")],
            }
        )
        number += 1
    return catalogue_from({"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": shapes})


def cloud_catalogue(most_cpus: int = 96) -> Catalogue:
    """Three families in two zones as clouds have them: within a family the price grows as the machine does."""
    shapes = [
        {
            "name": f"{ratio}x{size}",
            "allocatable": {
                "cpu": f"{size * 1000 - 80 - 10 * size}m",
                "memory": f"{size * ratio * 1024 - 300 - 20 * size}Mi",
                "pods": 110 if size < 64 else 250,
            },
            "offers": [{"zone": zone, "price": round(size * (0.032 + 0.0045 * ratio), 4)} for zone in ("a", "b")],
        }
        for ratio in (2, 4, 8)
        for size in (2, 4, 8, 16, 32, 48, 64, 96)
        if size <= most_cpus
    ]
    return catalogue_from({"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": shapes})


def linear_catalogue() -> Catalogue:
    """Machines of 1 to 256 cpus and 2, 4 and 8 GiB for each, on demand in four zones, as in Karpenter's catalogue for
    KWOK: the price is the sum of what its cpus and its memory cost, so that no size is better than another."""
    shapes = [
        {
            "name": f"{family}-{size}x",
            "allocatable": {
                "cpu": f"{size * 1000 - 100}m",
                "memory": f"{size * ratio * 1024 - 10}Mi",
                "pods": min(1024, 16 * size),
            },
            "offers": [
                {"zone": zone, "price": round(size * (0.025 + 0.001 * ratio * 1.073741824), 6)} for zone in "abcd"
            ],
        }
        for family, ratio in (("c", 2), ("s", 4), ("m", 8))
        for size in (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
    ]
    return catalogue_from({"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": shapes})


def pods_one_a_node(seed: int) -> list[Manifest]:
    """20 to 60 classes with 5 to 60 pods each; of three classes in ten, no two pods share a node."""
    chance = Random(seed)
    found = []
    for c in range(chance.randint(20, 60)):
        cpu = chance.choice(_MILLI_CPUS)
        memory = int(cpu * chance.choice(_RATIOS) * 1.024)
        labels = {"app": f"c{c}"}
        term = {"labelSelector": {"matchLabels": labels}, "topologyKey": make.HOSTNAME}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        spec: Manifest = {"affinity": apart} if chance.random() < 0.3 else {}
        owner = {**OWNER, "name": f"c{c}", "uid": f"rs-{c}"}
        for k in range(chance.randint(5, 60)):
            amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
            metadata = {"ownerReferences": [owner]}
            found.append(make.pod(f"c{c}-{k}", requests=amounts, labels=labels, metadata=metadata, spec=spec))
    chance.shuffle(found)
    return found


def full_nodes(n: int) -> list[Manifest]:
    """Nodes with a pod that leaves little room."""
    found = []
    for k in range(n):
        found.append(make.node(f"old-{k}", cpu="4", memory="16Gi", labels={make.ZONE: "ab"[k % 2]}))
        found.append(
            make.pod(f"old-{k}", requests={"cpu": f"{3000 + 100 * (k % 9)}m", "memory": "12Gi"}, on=f"old-{k}")
        )
    return found


def small_case(seed: int) -> tuple[list[Manifest], Catalogue]:
    """A plan of at most ten nodes or so: up to six machines, up to 60 pods of up to six classes."""
    chance = Random(seed)
    shapes = []
    for k in range(chance.randint(2, 6)):
        cpu, ratio = chance.choice([2, 4, 8, 16]), chance.choice([2, 4, 8])
        price = round(cpu * (0.03 + 0.005 * ratio) * chance.uniform(0.9, 1.1), 4)
        amounts = {"cpu": f"{cpu * 1000 - 100}m", "memory": f"{cpu * ratio * 1024 - 500}Mi", "pods": 58}
        shapes.append({"name": f"m{k}", "allocatable": amounts, "offers": [{"zone": "a", "price": price}]})
    pods = []
    for c in range(chance.randint(2, 6)):
        cpu, memory = chance.choice([100, 250, 500, 1000, 1500]), chance.choice([128, 512, 1024, 2048, 3000])
        amounts = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
        pods += [make.pod(f"c{c}-{k}", requests=amounts) for k in range(chance.randint(1, 10))]
    document = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": shapes}
    return pods, catalogue_from(document)


def _configuration(scores: str = "") -> KubeSchedulerConfiguration:
    """As by default, or with this scoringStrategy."""
    config = GivenConfiguration.read(None, None, None, None).as_of_today().config
    return (filling_nodes(config) if scores == MOST_ALLOCATED else None) or config


def _given(objects: list[Manifest]) -> SimulationInput:
    return load(read_objects(objects, SIMULATED_KINDS))


def plan(
    objects: list[Manifest],
    machines: Catalogue,
    limit_s: float,
    told: Callable[[str], None] = lambda _text: None,
    *,
    scores: str = "",
    **options: Any,
) -> PlanReport:
    request = PlanRequest(**{"from_scratch": True, **options}, time_limit_s=limit_s)
    assembled = assemble(_configuration(scores), given=plugins_from_classes(()))
    watch = PlanWatch(limit_s, time.process_time, told=told)
    return Planner(_given(objects), machines, request, assembled.config, assembled.registry, watch).plan()


def model_of(objects: list[Manifest], machines: Catalogue) -> PackingModel:
    assembled = assemble(_configuration(), given=plugins_from_classes(()))
    options = tuple(machines.options())
    planned = planned_world(_given(objects), options, assembled.config, registry=assembled.registry, from_scratch=True)
    return read_problem(planned).model
