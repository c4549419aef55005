"""A pod and the events about it, asked of the API server over HTTP.

Next: `timeline`, which makes a story of them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.requester import Requester
from kubesched.playground.web.sources import JsonObject, RecordedPod

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
