"""The scheduling queue to look at: which pods wait where, since when, and who rejected them. Pure.

Next: `debug_pages`.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from kubesched.scheduler.queue import QueuedPodInfo, SchedulingQueue

PLACES = ("active", "backoff", "unschedulable", "gated", "inFlight")


def queue_report(queue: SchedulingQueue, now_s: float) -> dict[str, Any]:
    """Active pods in the order in which they would be popped. `now_s` is the loop's time."""
    contents = queue.contents
    places = {
        "active": contents.active,
        "backoff": contents.backoff,
        "unschedulable": contents.unschedulable,
        "gated": contents.gated,
        "inFlight": contents.in_flight,
    }
    report: dict[str, Any] = {"summary": str(contents)}
    report |= {place: [_pod(queued, now_s) for queued in places[place]] for place in PLACES}
    report["hintFailures"] = [str(failure) for failure in contents.hint_failures()]
    return report


def queue_text(report: dict[str, Any]) -> str:
    lines = [f"Dump of scheduling queue: {report['summary']}"]
    for place in PLACES:
        pods = report[place]
        if pods:
            lines.append(f"{place} ({len(pods)}):")
            lines.extend(f"  {_line(pod)}" for pod in pods)
    lines.extend(f"hint failed: {failure}" for failure in report["hintFailures"])
    return "\n".join(lines) + "\n"


def _pod(queued: QueuedPodInfo, now_s: float) -> dict[str, Any]:
    pod = queued.info.pod
    found: dict[str, Any] = {
        "pod": queued.key,
        "uid": queued.uid,
        "scheduler": pod.spec.scheduler_name,
        "priority": pod.spec.priority or 0,
        "attempts": queued.attempts,
        "waitingSeconds": round(now_s - queued.queued_at_s, 3),
    }
    if pod.status.nominated_node_name:
        found["nominatedNodeName"] = pod.status.nominated_node_name
    if queued.unschedulable_plugins:
        found["unschedulablePlugins"] = sorted(queued.unschedulable_plugins)
    if queued.pending_plugins:
        found["pendingPlugins"] = sorted(queued.pending_plugins)
    if queued.is_gated:
        found["gatingPlugin"] = queued.gating_plugin
    if isfinite(queued.backoff_until_s) and queued.backoff_until_s > now_s:
        found["backoffSeconds"] = round(queued.backoff_until_s - now_s, 3)
    return found


def _line(pod: dict[str, Any]) -> str:
    parts = [
        pod["pod"],
        f"priority {pod['priority']}",
        f"attempts {pod['attempts']}",
        f"for {pod['waitingSeconds']:g}s",
    ]
    if "backoffSeconds" in pod:
        parts.append(f"backoff {pod['backoffSeconds']:g}s")
    if "gatingPlugin" in pod:
        parts.append(f"gated by {pod['gatingPlugin']}")
    rejectors = [*pod.get("unschedulablePlugins", ()), *pod.get("pendingPlugins", ())]
    if rejectors:
        parts.append(f"rejected by {', '.join(rejectors)}")
    if "nominatedNodeName" in pod:
        parts.append(f"nominated to {pod['nominatedNodeName']}")
    return ", ".join(parts)
