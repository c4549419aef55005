"""A whole run: from checked input to a cluster on which everything has happened.

How many pods of one workload may wait for a node before the rest of them is made: all, where all workloads together ask
for no more pods than can be made in reasonable time. Beyond that, as many as the nodes have places: replicas of a
workload ask for the same, so once one of them fits nowhere, neither does the next until something changes.

Next: `virtual.cluster` for how time passes, `report` for what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from kubesched.framework.handle import Registry
from kubesched.k8s.model.apps import CronJob, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, ReplicationController
from kubesched.k8s.model.manifests import collector_eased, collector_paused
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import PODS, node_units
from kubesched.k8s.workloads.actions import MOST_WAITING, Bursts, SeededNames
from kubesched.k8s.workloads.admission import AdmissionError
from kubesched.older.config import Emulation
from kubesched.older.engine.build import variant_of
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.engine.score import ByName, Seeded, TieBreak
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.scenario import plan_scenario
from kubesched.simulator.virtual.cluster import Progress, VirtualCluster

ALL_MADE = 100_000
"""So many pods, of all workloads together, are all made."""
FEWEST_WAITING = 1_000
"""So many pods of a large workload may wait, however small the cluster is."""


def bursts_for(given: SimulationInput) -> Bursts:
    """What controllers make at a time. Of large workloads as many pods may wait as all nodes of the files and of the
    scenario can hold, within bounds; very many large workloads share what is made of all."""
    objects = [*given.objects, *(item for step in given.steps for item in step.objects)]
    sizes = [_n_pods(item) for item in objects]
    if sum(sizes) <= ALL_MADE:
        return Bursts()
    n_places = sum(node_units(item.status.allocatable, "").get(PODS, 0) for item in objects if isinstance(item, Node))
    n_large = sum(size > FEWEST_WAITING for size in sizes)
    share = max(1, ALL_MADE // max(1, n_large))
    return Bursts(most_waiting=min(share, MOST_WAITING, max(FEWEST_WAITING, n_places)))


def _n_pods(item: KubeObject) -> int:
    """How many pods an object wants at a time. A DaemonSet's are as many as the nodes, and are all made."""
    match item:
        case Deployment() | ReplicaSet() | ReplicationController() | StatefulSet():
            n = item.spec.replicas
        case Job():
            n = item.spec.parallelism
        case CronJob():
            n = item.spec.job_template.spec.parallelism
        case _:
            return 0
    return 1 if n is None else n


DEFAULT_UNTIL_S = 24 * 3600.0
"""How long a workload is simulated that would never end by itself."""


def run_simulation(
    given: SimulationInput,
    config: KubeSchedulerConfiguration,
    options: SimulationOptions,
    *,
    source: str = "",
    progress: Progress | None = None,
    emulation: Emulation | None = None,
    registry: Registry | None = None,
    bursts: Bursts | None = None,
    before: Callable[[VirtualCluster], None] | None = None,
) -> VirtualCluster:
    """`source` names the configuration in messages. With an `emulation`, an older scheduler decides. `registry` has the
    plugins, if it is not the in-tree ones alone; `bursts` says how far controllers look ahead, if it is not for the
    input to say. `before` is called once all objects are there, and may plan what is to happen."""
    if options.until_s is None and not given.ends_by_itself:
        options = replace(options, until_s=DEFAULT_UNTIL_S)
    tie_break: TieBreak = ByName() if options.tie_break == "name" else Seeded(options.seed)
    loop = build_loop(
        without_extenders(config),
        tie_break,
        registry=registry,
        source=source,
        keeps_classes=options.keeps_classes,
        variant=variant_of(emulation),
    )
    cluster = VirtualCluster(loop, SeededNames(options.seed), options, bursts or bursts_for(given))
    plan_scenario(cluster, given.steps)
    with collector_paused():
        for item in given.objects:
            _apply(cluster, item)
        cluster.ledger.know_owners()
    if before is not None:
        before(cluster)
    with collector_eased():
        cluster.run(progress)
    return cluster


def _apply(cluster: VirtualCluster, item: KubeObject) -> None:
    """What an API server would refuse is reported, as for what controllers create."""
    try:
        cluster.admission.apply(item)
    except AdmissionError as refusal:
        cluster.ledger.refused(item, str(refusal))


def without_extenders(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """A simulation makes no requests."""
    return msgspec.structs.replace(config, extenders=())
