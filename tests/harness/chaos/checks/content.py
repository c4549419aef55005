"""Once faults are over: nothing is left behind, and a scheduler that starts from nothing would have nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.chaos.checks.poor_hints import has_poor_hints, minds_others
from harness.chaos.checks.violation import Violation
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.volume_binding import VolumeBinding

if TYPE_CHECKING:
    from harness.chaos.simulation import Simulation

SCHEDULED = "what can be scheduled is scheduled"
LEFT = "nothing is left behind"


def check_content(sim: Simulation) -> None:
    """No pod that waits fits anywhere, nor could make room for itself, judged from the server's objects alone.

    Strict runs, in which no pod is tried again just because it waited long, leave out what kube-scheduler itself leaves
    to that: pods whose hints are poor (`poor_hints`); and room, where affinity or spreading is in play or the pod has
    claims, for what these say against evictions is not remembered as a reason to wait for.
    """
    is_strict = bool(sim.options.number("strict"))
    asks_for_room = not is_strict or not any(map(minds_others, sim.server.all(Pod).values()))
    cluster = Cluster.from_objects(sim.server.everything())
    schedulers = build_schedulers(cluster, sim.configuration, ByName(), registry=sim.registry)
    for info in list(cluster.pending.values()):
        scheduler = schedulers.get(info.spec.scheduler_name)
        if scheduler is None or info.pod.is_terminating or (is_strict and _is_not_called(sim, cluster, info)):
            continue
        if not checked_pre_enqueue(scheduler.profile, info).is_success:
            continue
        decision = scheduler.decide(info)
        if decision.node_name:
            raise Violation(SCHEDULED, f"{info.name} waits {_where(sim, info.uid)}, and fits on {decision.node_name}")
        if decision.preemption is not None and asks_for_room and not (is_strict and info.spec.volumes):
            victims = ", ".join(victim.name for victim in decision.preemption.victims)
            room = f"could preempt {victims} on {decision.preemption.node_name}"
            raise Violation(SCHEDULED, f"{info.name} waits {_where(sim, info.uid)}, and {room}")


def _is_not_called(sim: Simulation, cluster: Cluster, info: PodInfo) -> bool:
    """Whether kube-scheduler may leave the pod to its waiting time, too. Nobody is told when the labels of a pod change
    that is assumed: it looks new when it is bound, and a new pod is no help for those that it kept away."""
    return has_poor_hints(cluster, info) or (sim.relabelled_unbound and minds_others(info.pod))


def check_rest(sim: Simulation) -> None:
    loop = sim.shell.loop
    left = {
        "bindings": list(loop.bindings),
        "pods in flight": [queued.uid for queued in loop.queue.contents.in_flight],
        "assumed pods": list(loop.cluster.assumed_keys),
        "unanswered effects": loop.outbox.n_unanswered,
        "assumed volumes and claims": _assumed(loop),
        "preemptions": [uid for uid in _uids(sim) if loop.evictions.is_preempting(uid)],
        "nodes that are not there, and have no pods": [name for name, pods in loop.cluster.orphans.items() if not pods],
    }
    for what, found in left.items():
        if found:
            raise Violation(LEFT, f"{what}: {found}")


def _assumed(loop: Scheduler) -> list[str]:
    """What was assumed for pods must be written and seen by now, or reverted."""
    objects = loop.cluster.objects
    found: list[str] = []
    for scheduler in loop.schedulers.values():
        plugin = scheduler.profile.plugins["VolumeBinding"]
        assert isinstance(plugin, VolumeBinding)
        found += plugin._assumed.volumes.assumed(objects.persistent_volumes)
        found += plugin._assumed.claims.assumed(objects.persistent_volume_claims)
    return found


def _uids(sim: Simulation) -> list[str]:
    return [info.uid for info in sim.shell.loop.cluster.pending.values()]


def _where(sim: Simulation, uid: str) -> str:
    contents = sim.shell.loop.queue.contents
    for name, pods in (
        ("in the active queue", contents.active),
        ("in backoff", contents.backoff),
        ("as unschedulable", contents.unschedulable),
        ("as gated", contents.gated),
    ):
        for queued in pods:
            if queued.uid == uid:
                return f"{name} because of {', '.join(sorted(queued.rejectors)) or 'an error'}"
    return "nowhere"
