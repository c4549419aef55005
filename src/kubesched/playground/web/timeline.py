"""A pod's life so far, in order of time: what its own fields, the events about it and the scheduler's decisions tell.

Events that are the same but for their count are one entry, as the API server keeps them; decisions are one entry each,
with the scores of then. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
        said = (
            f"nominated to {node}; evicts {', '.join(victims) if victims else 'nobody, it waits for pods that leave'}"
        )
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
