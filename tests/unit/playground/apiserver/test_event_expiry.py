"""Events do not pile up."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from kubesched.playground.apiserver.kinds.registry import ALL_KINDS
from kubesched.playground.apiserver.server import expire_events
from kubesched.playground.apiserver.storage.memory import MemoryStore
from kubesched.playground.apiserver.storage.store import ObjectKey
from kubesched.playground.apiserver.verbs.request import Api

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "is_gone"),
    [
        pytest.param({"lastTimestamp": "2026-01-01T10:59:00Z"}, True, id="said long ago"),
        pytest.param({"lastTimestamp": "2026-01-01T11:30:00Z"}, False, id="said just now"),
        pytest.param({"eventTime": "2026-01-01T09:00:00.000000Z"}, True, id="in the new form"),
        pytest.param(
            {
                "eventTime": "2026-01-01T09:00:00.000000Z",
                "series": {"count": 2, "lastObservedTime": "2026-01-01T11:59:00.000000Z"},
            },
            False,
            id="said again",
        ),
        pytest.param({}, True, id="only known to be old"),
    ],
)
def test_an_event_is_kept_for_an_hour_after_it_was_said_last(times: dict[str, object], is_gone: bool) -> None:
    async def run() -> None:
        store = MemoryStore()
        api = Api(store, ALL_KINDS, clock=lambda: NOW)
        resource = api.resource_of("events")
        assert resource is not None
        key = ObjectKey("default", "e")
        metadata = {"name": "e", "namespace": "default", "creationTimestamp": "2026-01-01T09:00:00Z"}
        store.put("events", key, {"metadata": metadata, "involvedObject": {}, **times}, resource.selectable_fields)
        assert await expire_events(api) == int(is_gone)
        assert (store.get("events", key) is None) == is_gone

    asyncio.run(run())
