"""Events of controllers and kubelets: how they look, and when they are put together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.event_forms import NORMAL, EventToRecord
from kubesched.k8s.client.event_recorder import (
    ALIKE_WITHIN_S,
    COMBINED,
    MOST_ALIKE,
    AlikeEvents,
    EventBroadcaster,
    EventSource,
)
from kubesched.k8s.model.storage import ObjectReference

WEB = ObjectReference(kind="ReplicaSet", namespace="shop", name="web", uid="1", resource_version="7")


def _created(number: int) -> EventToRecord:
    return EventToRecord(WEB, NORMAL, "SuccessfulCreate", "", f"Created pod: {number}", "replicaset-controller")


def test_events_that_differ_in_words_only_are_combined_after_a_while() -> None:
    now_s = 0.0
    alike = AlikeEvents(lambda: now_s)
    told = [alike.combined(_created(number)) for number in range(MOST_ALIKE + 5)]
    assert [record.note.startswith(COMBINED) for record in told] == [False] * (MOST_ALIKE - 1) + [True] * 6
    assert len({record.regarding for record in told[MOST_ALIKE:]}) == 1
    assert not alike.combined(_created(0)).note.startswith(COMBINED)
    now_s = ALIKE_WITHIN_S + 1
    assert not alike.combined(_created(99)).note.startswith(COMBINED)


class _Server:
    def __init__(self, refusal: ApiError | None = None) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.refusal = refusal
        self.asked = asyncio.Event()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "",
        timeout_s: float | None = None,
        gzip: bool = False,
    ) -> bytes:
        self.bodies.append(msgspec.json.decode(body or b"{}"))
        self.asked.set()
        if self.refusal is not None:
            raise self.refusal
        return b"{}"


def _told(server: _Server) -> None:
    async def run() -> None:
        teller = EventBroadcaster(server)
        about = ObjectReference(kind="Pod", namespace="shop", name="p", uid="2", field_path="spec.containers{c}")
        teller.tell(EventSource("kubelet", "node-1"), about, "Started", "Container started")
        writing = asyncio.create_task(teller.run())
        await server.asked.wait()
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing

    asyncio.run(run())


def test_an_event_says_who_said_it_and_of_which_container() -> None:
    server = _Server()
    _told(server)
    (body,) = server.bodies
    assert body["source"] == {"component": "kubelet", "host": "node-1"}
    assert body["involvedObject"]["fieldPath"] == "spec.containers{c}"
    assert (body["reason"], body["message"], body["count"]) == ("Started", "Container started", 1)


def test_a_namespace_that_ends_is_not_worth_a_word(caplog: Any) -> None:
    _told(_Server(ApiError(403, "Forbidden", "because it is being terminated")))
    assert caplog.records == []
