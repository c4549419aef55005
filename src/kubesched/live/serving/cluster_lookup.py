"""CAs and header names that no flag gives, as the API server publishes them for its extensions in a ConfigMap.

Looked at when the server starts, and again every minute. Next: `authentication`, which uses what is found.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
from kubesched.live.serving.authentication import RequestHeaders
from kubesched.live.serving.certificates import CaBundle
from kubesched.live.serving.reviews import ReviewClient, Sleep
from kubesched.live.serving.settings import ServingError

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"
EVERY_S = 60.0

_TOLERATED = (
    "Continuing without authentication configuration. This may treat all requests as anonymous.",
    "To require authentication configuration lookup to succeed, set --authentication-tolerate-lookup-failure=false",
)
_log = logging.getLogger("kubesched.serving")


class LookupFailure(Exception):  # noqa: N818 - it is tolerated by default
    """The ConfigMap could not be read."""


@dataclass(slots=True)
class ClusterLookup:
    """Fills what is not None."""

    client: ReviewClient
    client_cas: CaBundle | None
    request_headers: RequestHeaders | None
    sleep: Sleep = asyncio.sleep

    async def first(self, *, tolerates_failure: bool) -> None:
        """A client CA that is not there never hinders the start; whether proxies' settings do, is a flag."""
        try:
            await self._look()
        except LookupFailure as problem:
            if self.request_headers is not None and not tolerates_failure:
                text = f"unable to load configmap based request-header-client-ca-file: {problem}"
                raise ServingError(text) from None
            _warn("Error looking up in-cluster authentication configuration", problem)
            for line in _TOLERATED:
                _log.warning(line)

    async def keep_looking(self) -> None:
        """Until cancelled."""
        while True:
            await self.sleep(EVERY_S)
            try:
                await self._look()
            except LookupFailure as problem:
                _warn("Looking up in-cluster authentication configuration failed", problem)

    async def _look(self) -> None:
        try:
            body = await self.client.request("GET", PATH)
        except ApiError as problem:
            if problem.is_not_found:
                return
            raise LookupFailure(str(problem)) from problem
        except (Unreachable, AnswerLost, ClientConfigError) as problem:
            raise LookupFailure(str(problem)) from problem
        try:
            self._take(msgspec.json.decode(body, type=_ConfigMap).data)
        except (msgspec.DecodeError, ValueError) as problem:
            raise LookupFailure(f"configmap {NAMESPACE}/{NAME}: {problem}") from None

    def _take(self, data: dict[str, str]) -> None:
        if self.client_cas is not None and data.get("client-ca-file"):
            self.client_cas.set(data["client-ca-file"])
        if self.request_headers is None or not data.get("requestheader-client-ca-file"):
            return
        self.request_headers.names = replace(
            self.request_headers.names,
            allowed_names=_names(data, "requestheader-allowed-names"),
            username_headers=_names(data, "requestheader-username-headers"),
            uid_headers=_names(data, "requestheader-uid-headers"),
            group_headers=_names(data, "requestheader-group-headers"),
            extra_header_prefixes=_names(data, "requestheader-extra-headers-prefix"),
        )
        self.request_headers.cas.set(data["requestheader-client-ca-file"])


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


def _names(data: dict[str, str], key: str) -> tuple[str, ...]:
    """A list, as JSON in a string."""
    return msgspec.json.decode(data[key], type=tuple[str, ...]) if data.get(key) else ()


def _warn(message: str, problem: Any) -> None:
    _log.warning(message, extra={"fields": {"err": str(problem)}})
