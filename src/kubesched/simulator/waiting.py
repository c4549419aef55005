"""How far controllers look ahead: how many pods of one workload may wait for a node before the rest of them is made.

Where all workloads together ask for no more pods than can be made in reasonable time, all are made. Beyond that, what
does not fit is not made: replicas of a workload ask for the same, so once one of them fits nowhere, neither does the
next until something changes; and no change gives nodes to more pods than the nodes can hold. A workload of a billion
replicas needs as many pods that wait as there are places.
"""

from __future__ import annotations

from kubesched.k8s.model.apps import ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, ReplicationController
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import PODS, node_units
from kubesched.k8s.model.workloads import CronJob, Deployment, Job
from kubesched.k8s.workloads.bursts import MOST_WAITING, Bursts
from kubesched.simulator.loading import SimulationInput

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
