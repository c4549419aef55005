"""An API that writes down what it is asked, and answers from what it was given."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.k8s.client.errors import ApiError


class RecordingApi:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.answers: dict[str, Any] = {}

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Any = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
        gzip: bool = False,
    ) -> bytes:
        self.asked.append((method, path, None if body is None else msgspec.json.decode(body)))
        if method == "GET" and path not in self.answers:
            raise ApiError(404, "NotFound", f"{path} not found")
        return msgspec.json.encode(self.answers.get(path, {"kind": "Status"}))

    def written(self) -> list[tuple[str, str]]:
        return [(method, path) for method, path, _ in self.asked if method != "GET"]
