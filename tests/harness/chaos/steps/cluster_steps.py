"""Steps of everybody but the scheduler: users, other schedulers, kubelets, the volume controller.

They act on the API server alone; the loop learns of it when a later step lets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from harness.chaos import controllers, manifest
from harness.chaos.trace import ChaosStep
from kubesched.k8s.model.core import Node, Pod, PodCondition, PodDisruptionBudget
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.scheduling import CompositePodGroup, PodGroup
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim

if TYPE_CHECKING:
    from harness.chaos.simulation import Simulation

# -- pods --------------------------------------------------------------------------------------------------------------


def create_pod(sim: Simulation, step: ChaosStep) -> bool:
    return sim.server.create(manifest.pod_of(step))


def delete_pod(sim: Simulation, step: ChaosStep) -> bool:
    pod = sim.server.find(Pod, step.names[0])
    if pod is None:
        return False
    sim.server.delete_pod(pod)
    return True


def terminate_pod(sim: Simulation, step: ChaosStep) -> bool:
    """A finalizer keeps even a pod without a node until it is reaped."""
    pod = sim.server.find(Pod, step.names[0])
    if pod is None or pod.is_terminating:
        return False
    sim.server.terminate_pod(pod)
    return True


def reap_pod(sim: Simulation, step: ChaosStep) -> bool:
    pod = sim.server.find(Pod, step.names[0])
    return pod is not None and controllers.reap_pod(sim.server, pod)


def run_pod(sim: Simulation, step: ChaosStep) -> bool:
    """The kubelet reports on the pod: it runs, or is done."""
    pod = sim.server.find(Pod, step.names[0])
    phase = "Succeeded" if step.get("done") else "Running"
    if pod is None or not pod.spec.node_name or pod.status.phase in (phase, "Succeeded"):
        return False
    sim.server.write(replace(pod, status=replace(pod.status, phase=phase)))
    return True


def relabel_pod(sim: Simulation, step: ChaosStep) -> bool:
    """A new app, and no word about permits any more."""
    pod = sim.server.find(Pod, step.names[0])
    labels = {"app": step.get("app", "web")}
    if pod is None or pod.labels == labels:
        return False
    sim.server.write(replace(pod, metadata=replace(pod.metadata, labels=labels)))
    sim.relabelled_unbound |= not pod.spec.node_name
    return True


def touch_pod(sim: Simulation, step: ChaosStep) -> bool:
    """A change that means nothing to the scheduler."""
    pod = sim.server.find(Pod, step.names[0])
    if pod is None:
        return False
    note = PodCondition("Touched", "True", message=str(len(sim.server.logs["pods"])))
    others = tuple(c for c in pod.status.conditions or () if c.type != note.type)
    sim.server.write(replace(pod, status=replace(pod.status, conditions=(*others, note))))
    return True


def ungate_pod(sim: Simulation, step: ChaosStep) -> bool:
    pod = sim.server.find(Pod, step.names[0])
    if pod is None or not pod.spec.scheduling_gates:
        return False
    sim.server.write(replace(pod, spec=replace(pod.spec, scheduling_gates=None)))
    return True


def resize_pod(sim: Simulation, step: ChaosStep) -> bool:
    """In place. One that has a node may be more than the node can hold."""
    pod = sim.server.find(Pod, step.names[0])
    if pod is None:
        return False
    container = manifest.pod_of(step).spec.containers[0]
    container = replace(pod.spec.containers[0], resources=container.resources)
    if container == pod.spec.containers[0]:
        return False
    sim.server.write(replace(pod, spec=replace(pod.spec, containers=(container,))))
    sim.checks.excuse(pod.spec.node_name)
    sim.checks.excuse(pod.metadata.uid)
    return True


def bind_by_other(sim: Simulation, step: ChaosStep) -> bool:
    """Another scheduler binds the pod, without looking."""
    name, node_name = step.names
    pod = sim.server.find(Pod, name)
    if pod is None or pod.spec.node_name or pod.is_terminating or pod.spec.scheduling_gates:
        return False
    sim.server.assign_pod(pod, node_name)
    sim.checks.excuse(node_name)
    return True


# -- nodes -------------------------------------------------------------------------------------------------------------


def put_node(sim: Simulation, step: ChaosStep) -> bool:
    """A new node, or one that changed. It may have become smaller than what runs there."""
    node = manifest.node_of(step)
    known = sim.server.find(Node, node.name)
    if known is None:
        return sim.server.create(node)
    sim.checks.excuse(node.name)
    node = replace(node, metadata=replace(node.metadata, uid=known.metadata.uid))
    sim.server.write(node)
    return True


def beat_node(sim: Simulation, step: ChaosStep) -> bool:
    """A heartbeat: a new version of the same node."""
    node = sim.server.find(Node, step.names[0])
    if node is None:
        return False
    sim.server.write(node)
    return True


# -- volumes and budgets -----------------------------------------------------------------------------------------------


def create_claim(sim: Simulation, step: ChaosStep) -> bool:
    return sim.server.create(manifest.claim_of(step))


def create_volume(sim: Simulation, step: ChaosStep) -> bool:
    return sim.server.create(manifest.volume_of(step.names[0], step.get("node", "n0")))


def control_claim(sim: Simulation, step: ChaosStep) -> bool:
    claim = sim.server.find(PersistentVolumeClaim, step.names[0])
    return claim is not None and controllers.bind_claim(sim.server, claim)


def give_up_claim(sim: Simulation, step: ChaosStep) -> bool:
    claim = sim.server.find(PersistentVolumeClaim, step.names[0])
    return claim is not None and controllers.give_up_claim(sim.server, claim)


def put_budget(sim: Simulation, step: ChaosStep) -> bool:
    budget = manifest.budget_of(step)
    if not sim.server.create(budget):
        sim.server.write(budget)
    return True


def create_group(sim: Simulation, step: ChaosStep) -> bool:
    return sim.server.create(manifest.group_of(step))


def create_composite(sim: Simulation, step: ChaosStep) -> bool:
    return sim.server.create(manifest.composite_of(step))


# -- anything ----------------------------------------------------------------------------------------------------------

_DROPPED: dict[str, type[KubeObject]] = {
    "node": Node,
    "claim": PersistentVolumeClaim,
    "volume": PersistentVolume,
    "budget": PodDisruptionBudget,
    "group": PodGroup,
    "composite": CompositePodGroup,
}


def drop(sim: Simulation, step: ChaosStep) -> bool:
    """`drop node n0`: the object is gone at once."""
    kind, name = step.names
    item = sim.server.find(_DROPPED[kind], name)
    if item is None:
        return False
    sim.server.delete(item)
    if isinstance(item, Node):
        sim.checks.excuse(item.name)
    return True


CLUSTER_VERBS = {
    "pod": create_pod,
    "delete": delete_pod,
    "terminate": terminate_pod,
    "reap": reap_pod,
    "run": run_pod,
    "relabel": relabel_pod,
    "touch": touch_pod,
    "ungate": ungate_pod,
    "resize": resize_pod,
    "other": bind_by_other,
    "node": put_node,
    "beat": beat_node,
    "claim": create_claim,
    "volume": create_volume,
    "control": control_claim,
    "give-up": give_up_claim,
    "budget": put_budget,
    "group": create_group,
    "composite": create_composite,
    "drop": drop,
}
