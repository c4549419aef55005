"""Pods that fit nowhere, are told why, and are scheduled as soon as there are nodes for them."""

from __future__ import annotations

from harness.live_scenarios import checks, event_checks
from harness.live_scenarios.pod_follower import FollowedPod
from harness.live_scenarios.site import Site

POD_CPU = 2
_NO_HELP = (
    " no new claims to deallocate, preemption: 0/{total} nodes are available: "
    "{total} Preemption is not helpful for scheduling."
)


async def node_comes(site: Site) -> None:
    n_small = site.size.n_nodes
    await site.add_nodes(cpu=1, prefix="small")
    await site.create_all(site.pod(f"pod-{i}", cpu=str(POD_CPU)) for i in range(site.size.n_pods))
    await site.until(lambda: all(one.had("PodScheduled", "False") for one in site.pods), "every pod is told why")
    checks.must_hold([problem for one in site.pods for problem in _is_told_why(one, n_small)])
    await site.settle(lambda: _events_say_why(site, n_small))

    await site.add_nodes(cpu=POD_CPU * (1 + site.size.n_pods // site.size.n_nodes), prefix="large")
    await site.until(lambda: site.pods.n_bound == site.size.n_pods, "every pod is bound")
    checks.must_hold(checks.every_pod_is_bound_once(site, site.pods), checks.no_node_is_over_committed(site))
    await site.settle(lambda: event_checks.every_binding_is_told(site, site.pods))


def _is_told_why(one: FollowedPod, n_small: int) -> list[str]:
    told = one.had("PodScheduled", "False")[0]
    if told.reason == "Unschedulable" and _says_small(told.message, n_small):
        return []
    return [f"pod {one.name} has PodScheduled=False, {told.reason}: {told.message}"]


async def _events_say_why(site: Site, n_small: int) -> list[str]:
    found = await event_checks.events_by_pod(site, "FailedScheduling")
    problems = []
    for one in site.pods:
        events = found.get(one.name, [])
        notes = [event["note"] for event in events]
        is_expected = site.size.n_pods <= event_checks.MOST_QUEUED
        if (is_expected and not notes) or not all(_says_small(note, n_small) for note in notes):
            problems.append(f"pod {one.name} has events FailedScheduling: {notes}")
        problems += [problem for event in events for problem in event_checks.form_of(site, event, one)]
    return problems


def _says_small(message: str, n_small: int) -> bool:
    return event_checks.is_told_of_nodes(message, n_small, "Insufficient cpu", _NO_HELP)
