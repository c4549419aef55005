"""What the page tells of one pod: its life so far, in order of time, and why it waits or is where it is.

Its life is what its own fields, the events about it and the scheduler's decisions tell. Events that are the same but
for their count are one entry, as the API server keeps them; decisions are one entry each, with the scores of then. Pod
and events are asked of the API server over HTTP (`PodHistory`).

Why is made from the report that `kubesched explain -o json` prints: the cause, groups of nodes with a few rows of
numbers each, what would help, and for every node its group or its score. The report names every node several times
over; this names each once, so that five thousand of them still make a short answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.model.times import InstantError, parse_instant
from kubesched.playground.web.sources import JsonObject, RecordedPod

Entry = dict[str, Any]

_FAILED = "FailedScheduling"
_CONDITIONS = {"PodScheduled": "Bound", "Ready": "Ready", "DisruptionTarget": "Disrupted"}
"""Conditions that tell something when they are true, and what."""


ATTEMPT, PREEMPTION, CHOSEN = "No node fits", "Preemption", "Node chosen"

_ORDER = (
    "Created",
    ATTEMPT,
    PREEMPTION,
    CHOSEN,
    "Scheduled",
    "Bound",
    "Accepted by the kubelet",
    "Pulled",
    "Started",
    "Running",
    "Ready",
    "Killing",
    "Ended",
    "Deleted",
)
"""Of what happened in the same second; fields have no finer times."""

_TOLD_BY_EVENT = {"Bound": "Scheduled", "Running": "Started"}
"""What a field tells is left out where an event says the same with more words."""


def timeline(recorded: RecordedPod, decisions: Sequence[JsonObject] = ()) -> list[Entry]:
    """`decisions` about pods of this name, as `/debug/decisions` has them."""
    events = [event for event in recorded.events if _is_about(event, recorded.pod)]
    told = [entry for event in events if (entry := _of_event(event)) is not None]
    uid = ((recorded.pod or {}).get("metadata") or {}).get("uid")
    decided = [entry for one in decisions if uid in (None, one["uid"]) for entry in _of_decision(one)]
    n_attempts = sum(entry["what"] == ATTEMPT for entry in decided)
    told = [entry for entry in told if not (entry["what"] == _FAILED and entry.get("count", 1) <= n_attempts)]
    reasons = {entry["what"] for entry in told}
    fields = [] if recorded.pod is None else _of_pod(recorded.pod)
    entries = [*(entry for entry in fields if _TOLD_BY_EVENT.get(entry["what"]) not in reasons), *told, *decided]
    return sorted(entries, key=lambda entry: (int(entry["at"]), _rank(entry), entry["at"]))


def _is_about(event: JsonObject, pod: JsonObject | None) -> bool:
    """And not about an earlier pod of the same name."""
    uid = (event.get("involvedObject") or {}).get("uid")
    return pod is None or not uid or uid == (pod.get("metadata") or {}).get("uid")


def _rank(entry: Entry) -> int:
    if entry["what"] == "Created" and entry["message"]:  # a container, not the pod
        return _ORDER.index("Pulled")
    return _ORDER.index(entry["what"]) if entry["what"] in _ORDER else 0


def _of_pod(pod: JsonObject) -> list[Entry]:
    metadata, status = pod.get("metadata") or {}, pod.get("status") or {}
    found = [_entry(metadata.get("creationTimestamp"), "Created")]
    for condition in status.get("conditions") or ():
        what = _CONDITIONS.get(condition.get("type"))
        if what is not None and condition.get("status") == "True":
            node = (pod.get("spec") or {}).get("nodeName", "")
            said = f"to node {node}" if what == "Bound" and node else condition.get("message", "")
            found.append(_entry(condition.get("lastTransitionTime"), what, said))
    found.append(_entry(status.get("startTime"), "Accepted by the kubelet"))
    for container in status.get("containerStatuses") or ():
        found.extend(_of_container(container))
    if metadata.get("deletionTimestamp"):
        found.append(_entry(metadata["deletionTimestamp"], "Deleted", "ends at this time at the latest"))
    return [entry for entry in found if entry is not None]


def _of_container(container: JsonObject) -> list[Entry | None]:
    state, name = container.get("state") or {}, container.get("name", "")
    running, ended = state.get("running") or {}, state.get("terminated") or {}
    return [
        _entry(running.get("startedAt") or ended.get("startedAt"), "Running", f"container {name}"),
        _entry(ended.get("finishedAt"), "Ended", f"container {name}: {ended.get('reason', '')}"),
    ]


def _of_decision(decision: JsonObject) -> list[Entry]:
    at = decision["at"]
    if "node" in decision:
        fit = f"{decision['feasible']} of {decision['evaluated']} nodes looked at fit"
        said = "it was nominated there" if decision.get("wasNominated") else fit
        return [{"at": at, "what": CHOSEN, "message": f"{decision['node']}: {said}", "scores": decision["scores"]}]
    found: list[Entry] = [{"at": at, "what": ATTEMPT, "message": decision["message"], "isWarning": True}]
    if "preemption" in decision:
        node, victims = decision["preemption"]["node"], decision["preemption"]["victims"]
        evicted = ", ".join(victims) if victims else "no pods; it waits for pods that are terminating"
        said = f"nominated to {node}; evicts {evicted}"
        found.append({"at": at, "what": PREEMPTION, "message": said})
    return found


def _of_event(event: JsonObject) -> Entry | None:
    """Of core v1, or of events.k8s.io/v1 as core v1 shows it."""
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    first = event.get("firstTimestamp") or event.get("eventTime")
    created = (event.get("metadata") or {}).get("creationTimestamp")
    entry = _entry(last or created, event.get("reason", ""), event.get("message") or event.get("note") or "")
    if entry is None:
        return None
    entry["isWarning"] = event.get("type") == "Warning"
    count = series.get("count") or event.get("count") or 1
    if count > 1:
        entry["count"] = count
        entry["since"] = _seconds(first) or entry["at"]
    return entry


def _entry(instant: str | None, what: str, message: str = "") -> Entry | None:
    at = _seconds(instant)
    return None if at is None else {"at": at, "what": what, "message": message}


def _seconds(instant: str | None) -> float | None:
    if not instant:
        return None
    try:
        return parse_instant(instant)
    except InstantError:
        return None


MOST_ROWS = 6
"""Nodes of a group that are shown with their numbers."""
MOST_SCORED = 8
MOST_VICTIMS = 10
_AMOUNTS = ("requested", "free", "used", "allocatable", "missing")


def why(report: JsonObject) -> JsonObject:
    """What `/api/explain` and `/api/whatif` answer."""
    decision = report.get("withoutGates", report)["explanation"]
    groups = report["groups"]
    totals = {name: node["total"] for name, node in decision["nodes"].items() if node.get("fit")}
    answer: JsonObject = {
        "pod": report["pod"],
        "scheduler": report["scheduler"],
        "headline": report["headline"],
        "cause": report["cause"],
        "message": decision["message"],
        "nodes": len(decision["nodes"]),
        "fit": len(totals),
        "best": decision["best"],
        "groups": [_group(group, report["numbers"]) for group in groups],
        "changes": report["changes"],
        "scores": _scores(decision["nodes"]),
        "totals": totals,
        "groupOf": {name: index for index, group in enumerate(groups) for name in group["nodes"]},
    }
    preemption = decision.get("preemption")
    if preemption and preemption.get("node"):
        answer["preemption"] = {"node": preemption["node"], "victims": preemption["victims"][:MOST_VICTIMS]}
    return answer


def _group(group: JsonObject, numbers: dict[str, list[JsonObject]]) -> JsonObject:
    nodes = group["nodes"]
    rows = [
        {"node": name, "resource": finding["resource"]} | {one: finding[one] for one in _AMOUNTS}
        for name in nodes[:MOST_ROWS]
        for finding in numbers.get(name, ())
        if "resource" in finding
    ]
    said = list(dict.fromkeys(reason for status in group["rejections"] for reason in status["reasons"]))
    return {
        "summary": group["summary"],
        "nearness": group["nearness"],
        "count": group["count"],
        "reasons": said,
        "plugins": [status["plugin"] for status in group["rejections"]],
        "names": nodes[:MOST_ROWS],
        "rows": rows,
    }


def _scores(nodes: dict[str, JsonObject]) -> list[JsonObject]:
    """The best nodes with every plugin's part of their total."""
    fitting = [(name, node) for name, node in nodes.items() if node.get("fit")]
    fitting.sort(key=lambda pair: (-pair[1]["total"], pair[0]))
    return [_score(name, node) for name, node in fitting[:MOST_SCORED]]


def _score(name: str, node: JsonObject) -> dict[str, Any]:
    return {"node": name, "total": node["total"], "plugins": node.get("scores") or {}}


_MOST_EVENTS = "200"


class PodHistory:
    """Serves as `WebSources.recorded`."""

    def __init__(self, requests: Requester) -> None:
        self._requests = requests

    async def __call__(self, namespace: str, name: str) -> RecordedPod:
        """Raises `ApiError`, `Unreachable` and `AnswerLost`."""
        events = await self.events(namespace, name)
        return RecordedPod(await self._pod(f"/api/v1/namespaces/{namespace}/pods/{name}"), events)

    async def events(self, namespace: str, name: str) -> list[JsonObject]:
        selector = f"involvedObject.kind=Pod,involvedObject.name={name}"
        where = f"/api/v1/namespaces/{namespace}/events"
        answer = await self._get(where, {"fieldSelector": selector, "limit": _MOST_EVENTS})
        return answer.get("items") or []

    async def _pod(self, path: str) -> JsonObject | None:
        try:
            return await self._get(path, {})
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    async def _get(self, path: str, params: dict[str, str]) -> JsonObject:
        answer: dict[str, Any] = msgspec.json.decode(await self._requests.request("GET", path, params=params))
        return answer
