"""`/debug/queue`, `/debug/cache`, `/debug/decisions`, `/explain/NAMESPACE/POD`: looks inside that kube-scheduler lacks.

The queue: which pods wait where, since when, and who rejected them. The cache: the cluster as the scheduler knows it,
and what is wrong with it compared to the informers; to compare is to count everything again, about 30 microseconds a
pod. Decisions: the last ones, with the scores of then. JSON, or text for whoever accepts text/plain. On SIGUSR2 queue
and cache go to the log, as in kube-scheduler.

Next: `live_sources`, for the explanation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from aiohttp import web

from kubesched.explanation.explain import NotExplainableError
from kubesched.k8s.model.meta import KubeObject
from kubesched.live.serving import answers
from kubesched.live.serving.answers import prefers_text
from kubesched.live.serving.sources import Report, Sources
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.columns import NumberColumn
from kubesched.scheduler.cluster.self_check import self_check
from kubesched.scheduler.engine.loop import Scheduler
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


def cache_report(cluster: Cluster, informed: Iterable[KubeObject] | None = None) -> dict[str, Any]:
    """`informed` is all that the informers hold; without it, nothing is compared."""
    report: dict[str, Any] = {
        "counts": {
            "nodes": cluster.table.n,
            "pods": cluster.n_pods,
            "assumedPods": cluster.n_assumed,
            "pendingPods": len(cluster.pending),
        },
        "nodes": [_node(cluster, int(row)) for row in cluster.rows_in_order],
        "assumed": sorted(cluster.assumed_keys),
        "orphans": {name: sorted(pods) for name, pods in sorted(cluster.orphans.items())},
    }
    if informed is not None:
        report["findings"] = [
            {"problem": finding.problem, "subject": finding.subject, "detail": finding.detail}
            for finding in self_check(cluster, informed)
        ]
    return report


def cache_text(report: dict[str, Any]) -> str:
    counts = ", ".join(f"{name} {number}" for name, number in report["counts"].items())
    lines = [f"Dump of cached NodeInfo: {counts}"]
    for node in report["nodes"]:
        lines.append(f"Node name: {node['name']}")
        lines.append(f"  Requested: {_amounts(node['requested'])}")
        lines.append(f"  Allocatable: {_amounts(node['allocatable'])}")
        lines.append(f"  Scheduled Pods (number: {len(node['pods'])}): {' '.join(node['pods'])}".rstrip())
        if node["nominated"]:
            lines.append(f"  Nominated Pods (number: {len(node['nominated'])}): {' '.join(node['nominated'])}")
    lines.extend(f"pods on node {name}, which is not known: {' '.join(p)}" for name, p in report["orphans"].items())
    if "findings" in report:
        lines.append(f"Cache comparer: {len(report['findings'])} findings")
        lines.extend(f"  {f['problem']} {f['subject']} {f['detail']}".rstrip() for f in report["findings"])
    return "\n".join(lines) + "\n"


def _node(cluster: Cluster, row: int) -> dict[str, Any]:
    table = cluster.table
    name = table.names[row]
    return {
        "name": name,
        "requested": _units(table.requested, row),
        "allocatable": _units(table.allocatable, row) | {"pods": int(table.allowed_pods.cells[row])},
        "pods": [info.key for info in table.pods.on(row)],
        "nominated": [info.key for info in cluster.nominations.on(name)],
    }


def _units(columns: dict[str, NumberColumn], row: int) -> dict[str, int]:
    """Milli-cpus, bytes, whole units; what is 0 is left out."""
    amounts = {name: int(column.cells[row]) for name, column in columns.items()}
    return {("cpuMilli" if name == "cpu" else name): amount for name, amount in amounts.items() if amount}


def _amounts(amounts: dict[str, int]) -> str:
    return " ".join(f"{name}:{amount}" for name, amount in amounts.items()) or "nothing"


def decisions_text(report: dict[str, Any]) -> str:
    lines = [f"Last decisions: {report['kept']} kept of {report['made']}"]
    for one in report["decisions"]:
        if "node" in one:
            scores = ", ".join(f"{node['node']} {node['total']}" for node in one["scores"])
            came_to = f"{one['node']}, {one['feasible']} of {one['evaluated']} nodes fit{scores and ': '}{scores}"
        else:
            came_to = one["message"]
        lines.append(f"{one['number']} {one['pod']} -> {came_to}")
        if "preemption" in one:
            victims = " ".join(one["preemption"]["victims"])
            lines.append(f"  preempts on {one['preemption']['node']}: {victims}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class DebugPages:
    sources: Sources

    async def queue(self, request: web.Request) -> web.Response:
        if self.sources.queue is None:
            return answers.not_found()
        return _shown(request, self.sources.queue(), queue_text)

    async def cache(self, request: web.Request) -> web.Response:
        """With `?check`, compared with what the informers hold: scheduling waits for as long as that takes."""
        if self.sources.cache is None:
            return answers.not_found()
        return _shown(request, self.sources.cache("check" in request.query), cache_text)

    async def decisions(self, request: web.Request) -> web.Response:
        """With `?pod=NAMESPACE/NAME` of one pod, with `?after=N` those after the one with this number."""
        if self.sources.decisions is None:
            return answers.not_found()
        after = request.query.get("after", "0")
        report = self.sources.decisions(request.query.get("pod", ""), int(after) if after.isdecimal() else 0)
        return _shown(request, report, decisions_text)

    async def explain(self, request: web.Request) -> web.Response:
        if self.sources.explain is None:
            return answers.not_found()
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        try:
            found = await self.sources.explain(namespace, name, as_text=_wants_text(request))
        except NotExplainableError as problem:
            details = {"name": name, "kind": "pods"}
            return answers.status_answer(request, 404, "NotFound", str(problem), details)
        return answers.text(f"{found}\n") if isinstance(found, str) else answers.json_answer(request, found)


def _shown(request: web.Request, report: Report, text: Callable[[Report], str]) -> web.Response:
    return answers.text(text(report)) if _wants_text(request) else answers.json_answer(request, report)


def _wants_text(request: web.Request) -> bool:
    return prefers_text(request.headers.get("Accept", ""))


_log = logging.getLogger("kubesched.debugger")


def log_state(loop: Scheduler, informed: Iterable[KubeObject], now_s: float) -> None:
    _log.info("Dump of the scheduling queue", extra={"fields": {"queue": queue_report(loop.queue, now_s)}})
    _log.info("Dump of the cache", extra={"fields": {"cache": cache_report(loop.cluster, informed)}})
