"""A full cluster, and pods that are more important than those in it."""

from __future__ import annotations

import re

from harness.live_scenarios import checks, event_checks, manifests
from harness.live_scenarios.pod_follower import FollowedPod
from harness.live_scenarios.site import Site

NODE_CPU = 4
LOW, HIGH = 10, 1000
_PREEMPTED = r"Preempted by pod (\S+) on node (\S+)"


async def preemption(site: Site) -> None:
    """Two pods fill each node; an important one needs a whole node, so two others must go for each."""
    n_high = max(1, min(site.size.n_nodes, site.size.n_pods // 4))
    low, high = await _priority_classes(site)
    await site.add_nodes(cpu=NODE_CPU)
    await site.create_all(
        site.pod(f"low-{i}", cpu="2", priorityClassName=low, priority=LOW) for i in range(2 * site.size.n_nodes)
    )
    await site.until(lambda: site.pods.n_bound == 2 * site.size.n_nodes, "the cluster is full")
    await site.create_all(site.pod(f"high-{i}", cpu="4", priorityClassName=high, priority=HIGH) for i in range(n_high))
    important = [site.pods[f"high-{i}"] for i in range(n_high)]
    await site.until(lambda: all(one.is_bound for one in important), "every important pod is bound")
    await site.until(lambda: len(_victims(site)) >= 2 * n_high, "two pods have gone for each important one")
    checks.must_hold(
        checks.every_pod_is_bound_once(site, site.pods),
        checks.no_node_is_over_committed(site),
        _only_who_had_to_go(site, important),
        [problem for one in _victims(site) for problem in _is_marked(site, one)],
    )
    await site.settle(lambda: event_checks.every_binding_is_told(site, important))
    await site.settle(lambda: _evictions_are_told(site, important))
    await site.settle(lambda: _failures_are_told(site, important))


async def _priority_classes(site: Site) -> tuple[str, str]:
    low, high = f"{site.run_id}-low", f"{site.run_id}-high"
    await site.create(manifests.priority_class(low, site.run_id, LOW))
    await site.create(manifests.priority_class(high, site.run_id, HIGH))
    return low, high


def _victims(site: Site) -> list[FollowedPod]:
    return [one for one in site.pods if one.is_gone]


def _only_who_had_to_go(site: Site, important: list[FollowedPod]) -> list[str]:
    taken = {one.node_name for one in important}
    victims = _victims(site)
    problems = [f"pod {one.name} went, and its node was not needed" for one in victims if one.node_name not in taken]
    problems += [f"the important pod {one.name} was evicted" for one in victims if one.name.startswith("high")]
    if len(victims) != 2 * len(important):
        problems.append(f"{len(victims)} pods were evicted for {len(important)} important ones that need two each")
    return problems


def _is_marked(site: Site, victim: FollowedPod) -> list[str]:
    told = [(one.reason, one.message) for one in victim.had("DisruptionTarget", "True")]
    wanted = ("PreemptionByScheduler", f"{site.scheduler_name}: preempting to accommodate a higher priority pod")
    return [] if told == [wanted] else [f"pod {victim.name} should have DisruptionTarget {wanted}, and has {told}"]


async def _evictions_are_told(site: Site, important: list[FollowedPod]) -> list[str]:
    """One `Preempted` for each victim, which names the pod that came instead, and the node."""
    found = await event_checks.events_by_pod(site, "Preempted")
    preemptors = [one.pod for one in important if one.pod is not None]
    calls = {pod.pod_key if site.victims_are_told_names else pod.metadata.uid for pod in preemptors}
    words = r"(?:Preempted )?by (\S+) on node (\S+)" if site.victims_are_told_names else _PREEMPTED
    problems = []
    victims = _victims(site)
    for victim in victims:
        events = found.get(victim.name, [])
        if len(events) != 1:
            if events or len(victims) <= event_checks.MOST_QUEUED:
                problems.append(f"pod {victim.name} should have one event Preempted, and has {len(events)}")
            continue
        told = re.fullmatch(words, events[0]["note"])
        if told is None or told[2] != victim.node_name or told[1] not in calls:
            problems.append(f"pod {victim.name} on {victim.node_name} is told {events[0]['note']!r}")
        elif events[0].get("related"):
            problems.append(f"event Preempted of pod {victim.name} is related to {events[0]['related']}")
        problems += event_checks.form_of(site, events[0], victim)
    return problems


async def _failures_are_told(site: Site, important: list[FollowedPod]) -> list[str]:
    """Each important pod was first told that there is no room, by an event and by its condition."""
    found = await event_checks.events_by_pod(site, "FailedScheduling")
    problems = []
    for one in important:
        notes = [event["note"] for event in found.get(one.name, [])]
        if len(important) <= event_checks.MOST_QUEUED and not any(_says_full(site, note) for note in notes):
            problems.append(f"pod {one.name} has no event FailedScheduling about full nodes: {notes}")
        problems += [problem for event in found.get(one.name, []) for problem in event_checks.form_of(site, event, one)]
        failed = one.had("PodScheduled", "False")
        if not any(told.reason == "Unschedulable" and _says_full(site, told.message) for told in failed):
            problems.append(f"pod {one.name} never had PodScheduled=False, Unschedulable, about full nodes: {failed}")
    return problems


def _says_full(site: Site, message: str) -> bool:
    return event_checks.is_told_of_nodes(message, site.size.n_nodes, "Insufficient cpu")
