"""Once faults are over: nothing is left behind, and a scheduler that starts from nothing would have nothing to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harness.chaos.checks.poor_hints import has_poor_hints, minds_others
from harness.chaos.checks.violation import Violation
from kubesched.framework.groups import GroupCycle
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.scheduling import CompositePodGroup, PodGroup, is_composite
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.scheduler.engine.group_cycle import GroupAttempt
from kubesched.scheduler.engine.group_trial import GroupTrial
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.placements import choose_placement
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.newer.composites import TreeTrial
from kubesched.scheduler.newer.groups import NewerTrial
from kubesched.scheduler.plugins.volume_binding import VolumeBinding

if TYPE_CHECKING:
    from harness.chaos.simulation import Simulation

WITH_TOPOLOGY = (2, 4)
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
    if sim.options.number("groups"):
        check_groups(sim, cluster, schedulers)
    for info in list(cluster.pending.values()):
        if sim.options.number("groups") and info.spec.scheduling_group is not None:
            continue
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


def check_groups(sim: Simulation, cluster: Cluster, schedulers: Mapping[str, ProfileScheduler]) -> None:
    """No group that waits would fit, tried as a whole; be it that some of its pods have a node already."""
    assert cluster.groups is not None
    is_next = bool(sim.options.number("next"))
    forest = cluster.forest
    keys = cluster.groups.names() if forest is None else filter(None, map(forest.root_of, cluster.groups.names()))
    for key in sorted(set(keys)):
        state = cluster.group_members(key)
        assert state is not None
        waiting = [pod for pod in state.unscheduled_pods() if not pod.pod.is_terminating]
        pods = sorted(waiting, key=lambda pod: _turn(sim, pod))
        by_name = {pod.spec.scheduler_name for pod in pods}
        if len(by_name) != 1:
            continue
        scheduler = schedulers[by_name.pop()]
        entering = [pod for pod in pods if checked_pre_enqueue(scheduler.profile, pod).is_success]
        if not entering or (is_next and (len(entering) < len(pods) or _is_refused(cluster, key, pods))):
            continue
        pods = entering
        trial, group = (NewerTrial if is_next else GroupTrial)(cluster, scheduler, 0.0), GroupCycle(key, pods)
        if is_composite(key):
            attempt = GroupAttempt(group, [], scheduler, 0.0, 0.0, trial)
            outcomes = TreeTrial(cluster, attempt, reasons=True).run(key)
            outcome = outcomes[key]
            outcome.members = [member for one in outcomes.values() if one.status.is_success for member in one.members]
            trial.take_back()
        elif sim.options.number("groups") in WITH_TOPOLOGY:
            outcome = choose_placement(cluster, scheduler, trial, group, post_filter=False, keeps=False)
        else:
            outcome = trial.run(group, pods, post_filter=False)
        fits = [member.decision.pod.name for member in outcome.members if member.node_name]
        if outcome.status.is_success and fits:
            where = ", ".join(f"{pod.name} {_where(sim, pod.uid)}" for pod in pods)
            raise Violation(SCHEDULED, f"{key} waits ({where}), and {', '.join(fits)} fit")


def _is_refused(cluster: Cluster, key: str, pods: Sequence[PodInfo]) -> bool:
    """v1.37 wants all pods to have the priority of their group, and one preemption policy."""
    assert cluster.forest is not None
    pod_group, members = cluster.forest.get(key), cluster.group_members(key)
    everybody = (*pods, *(members.scheduled_pods() if members else ()))
    policies = {pod.spec.preemption_policy for pod in everybody}
    return pod_group is None or len(policies) > 1 or any(pod.priority != pod_group.priority for pod in everybody)


def _turn(sim: Simulation, pod: PodInfo) -> tuple[float | str, ...]:
    """In which order pods of a group are tried: with another, others might fit."""
    queued = sim.shell.loop.queue.contents.find(pod.key)
    if queued is None:
        return -pod.priority, 0.0, pod.name
    if sim.options.number("next"):
        return -pod.priority, -queued.attempts, queued.queued_at_s, pod.name
    return -pod.priority, queued.initial_attempt_at_s or 0.0, pod.name


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
    groups = [group.metadata.uid for group in sim.server.all(PodGroup).values()]
    groups += [group.metadata.uid for group in sim.server.all(CompositePodGroup).values()]
    return [*groups, *(info.uid for info in sim.shell.loop.cluster.pending.values())]


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
