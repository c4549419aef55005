"""What most need of a REST client: one request, and its whole answer; and the media types of patches.

`RestClient` has this shape; so has any stand-in of a test. The errors are those of `errors`.

Next: `lease`, `event_recorder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""Lists are merged by their keys: conditions by type, say."""

APPLY_PATCH = "application/apply-patch+yaml"
"""What there should be, made or changed: `fieldManager` must be among the parameters. JSON is YAML enough."""


class Requester(Protocol):
    """Sends one request to the API server and gives the body of its answer."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
        gzip: bool = False,
    ) -> bytes: ...
