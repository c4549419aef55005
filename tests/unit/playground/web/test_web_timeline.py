"""A pod's life, told from its fields and its events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.playground.web.pod_story import PodHistory, timeline
from kubesched.playground.web.sources import RecordedPod

POD: dict[str, Any] = {
    "metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"nodeName": "n"},
    "status": {
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:09Z"},
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:09Z"},
        ],
        "startTime": "2026-01-01T00:00:10Z",
        "containerStatuses": [{"name": "c", "state": {"running": {"startedAt": "2026-01-01T00:00:12Z"}}}],
    },
}
FAILED = {
    "type": "Warning",
    "reason": "FailedScheduling",
    "message": "0/1 nodes are available",
    "eventTime": "2026-01-01T00:00:01.500000Z",
    "series": {"count": 3, "lastObservedTime": "2026-01-01T00:00:07.000000Z"},
}


def test_what_happened_is_told_in_order() -> None:
    told = timeline(RecordedPod(POD, [FAILED]))
    assert [(entry["what"], entry["message"]) for entry in told] == [
        ("Created", ""),
        ("FailedScheduling", "0/1 nodes are available"),
        ("Bound", "to node n"),
        ("Accepted by the kubelet", ""),
        ("Running", "container c"),
    ]


def test_events_take_the_place_of_fields_that_say_the_same() -> None:
    pod = {**POD, "metadata": {**POD["metadata"], "uid": "1"}}
    events = [
        {"reason": reason, "message": "said", "lastTimestamp": at, "involvedObject": {"uid": uid}}
        for reason, at, uid in (
            ("Started", "2026-01-01T00:00:12Z", "1"),
            ("Pulled", "2026-01-01T00:00:12Z", "1"),
            ("Scheduled", "2026-01-01T00:00:09Z", "1"),
            ("Killing", "2026-01-01T00:00:01Z", "an earlier pod"),
        )
    ]
    told = [entry["what"] for entry in timeline(RecordedPod(pod, events))]
    assert told == ["Created", "Scheduled", "Accepted by the kubelet", "Pulled", "Started"]


def test_an_event_that_occurred_again_says_how_often_and_since_when() -> None:
    (entry,) = timeline(RecordedPod(None, [FAILED]))
    assert entry["isWarning"]
    assert entry["count"] == 3
    assert entry["at"] - entry["since"] == 5.5


def test_an_event_without_a_time_is_left_out() -> None:
    assert timeline(RecordedPod(None, [{"reason": "Odd"}, {"reason": "Worse", "lastTimestamp": "yesterday"}])) == []


class _Server:
    """Has the events of one pod, and the pod unless it is gone."""

    def __init__(self, is_gone: bool) -> None:
        self._is_gone = is_gone
        self.asked: list[tuple[str, Mapping[str, str] | None]] = []

    async def request(self, method: str, path: str, *, params: Mapping[str, str] | None = None, **_: Any) -> bytes:
        self.asked.append((path, params))
        if path.endswith("/events"):
            return msgspec.json.encode({"items": [FAILED]})
        if self._is_gone:
            raise ApiError(404, reason="NotFound", message="gone")
        return msgspec.json.encode(POD)


def test_the_api_server_is_asked_for_the_pod_and_the_events_about_it() -> None:
    server = _Server(is_gone=False)
    recorded = asyncio.run(PodHistory(server)("shop", "p"))
    assert recorded == RecordedPod(POD, [FAILED])
    selector = "involvedObject.kind=Pod,involvedObject.name=p"
    assert ("/api/v1/namespaces/shop/events", {"fieldSelector": selector, "limit": "200"}) in server.asked


def test_a_pod_that_is_gone_still_has_its_events() -> None:
    recorded = asyncio.run(PodHistory(_Server(is_gone=True))("shop", "p"))
    assert recorded == RecordedPod(None, [FAILED])
