"""What the scheduler tells users: the events and conditions of kube-scheduler v1.36.4, to the letter.

Next: `run`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from harness.live_scenarios.pod_follower import FollowedPod
from harness.live_scenarios.site import Site

MOST_QUEUED = 1000
"""Events that kube-scheduler lets wait to be written. When more pods come at once, it drops some."""

EventsByPod = dict[str, list[dict[str, Any]]]

_TYPES = {"Scheduled": "Normal", "FailedScheduling": "Warning", "Preempted": "Normal"}
_ACTIONS = {"Scheduled": "Binding", "FailedScheduling": "Scheduling", "Preempted": "Preempting"}


async def events_by_pod(site: Site, reason: str) -> EventsByPod:
    found: EventsByPod = defaultdict(list)
    for event in await site.listed("Event"):
        regarding = event.get("regarding") or {}
        if event.get("reason") == reason and regarding.get("kind") == "Pod":
            found[regarding["name"]].append(event)
    return found


async def every_binding_is_told(site: Site, pods: Iterable[FollowedPod]) -> list[str]:
    """One `Scheduled` for each pod, which names its node."""
    found = await events_by_pod(site, "Scheduled")
    problems = []
    pods = list(pods)
    for one in pods:
        events = found.get(one.name, [])
        wanted = f"Successfully assigned {site.namespace}/{one.name} to {one.node_name}"
        notes = [event["note"] for event in events]
        if notes != [wanted] and (notes or len(pods) <= MOST_QUEUED):
            problems.append(f"pod {one.name} should have one event Scheduled, {wanted!r}, and has {notes}")
        problems += [problem for event in events for problem in form_of(site, event, one)]
    return problems


def form_of(site: Site, event: dict[str, Any], about: FollowedPod) -> list[str]:
    """All of an event but its note and times."""
    reason = event["reason"]
    uid = "" if about.pod is None else about.pod.metadata.uid
    regarding = {"kind": "Pod", "namespace": site.namespace, "name": about.name, "uid": uid, "apiVersion": "v1"}
    wanted = {
        "type": _TYPES[reason],
        "action": _ACTIONS[reason],
        "reportingController": site.scheduler_name,
        "regarding": regarding,
    }
    has = {name: event.get(name) for name in wanted}
    has["regarding"] = {name: event["regarding"].get(name) for name in regarding}
    problems = [] if has == wanted else [f"event {reason} of pod {about.name} has {has}, and should have {wanted}"]
    if not event["regarding"].get("resourceVersion"):
        problems.append(f"event {reason} of pod {about.name} does not say which version of the pod it is about")
    if not str(event.get("reportingInstance")).startswith(f"{site.scheduler_name}-"):
        problems.append(f"event {reason} of pod {about.name} is by {event.get('reportingInstance')}")
    return problems


def is_told_of_nodes(message: str, n_nodes: int, reason: str, ending: str = "") -> bool:
    """Whether a message says that our nodes fail for this reason, and all others because they are not ours."""
    others = re.fullmatch(
        rf"0/(\d+) nodes are available: {n_nodes} {re.escape(reason)}"
        rf"(?:, (\d+) node\(s\) didn't match Pod's node affinity/selector)?\.(.*)",
        message,
    )
    if others is None:
        return False
    total, n_others, rest = int(others[1]), int(others[2] or 0), others[3]
    return total == n_nodes + n_others and rest == ending.format(total=total)
