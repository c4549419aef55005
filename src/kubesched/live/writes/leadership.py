"""The last gate before the wire: a copy that does not surely hold the lease writes nothing.

A write may take no longer than the lease is sure to be ours, so that none lands after another copy took over. It is
looked at after a request has waited for its turn, not before. Writes that come too late are withheld. Reads go through
at any time: by them we learn what became of a write whose answer was lost with the lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from kubesched.k8s.client.rest import RestClient


class LeaderGate:
    """A requester whose writes end with the lease. Raises `client.errors.NotSent`."""

    def __init__(self, requests: RestClient, left_s: Callable[[], float] = lambda: inf) -> None:
        self._requests = requests
        self._left_s = left_s
        """For how many more seconds nobody else can hold the lease; infinite without an election."""

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
    ) -> bytes:
        return await self._requests.request(
            method,
            path,
            params=params,
            body=body,
            content_type=content_type,
            timeout_s=timeout_s,
            gzip=gzip,
            left_s=None if method == "GET" else self._left_s,
        )
