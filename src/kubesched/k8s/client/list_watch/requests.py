"""What is asked of the server: the parameters of lists and watches, and the part of the client that is needed.

Next: `reflector`, which sends them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from random import Random
from typing import Protocol

from kubesched.k8s.client.requester import Requester

PAGE_SIZE = 500
LIST_TIMEOUT_S = 60.0
SHORTEST_WATCH_S = 300
"""A watch lasts between this and twice as long, so that the watches of many clients do not end together."""

FROM_CACHE = "0"
CONSISTENT = ""


class ListWatchApi(Requester, Protocol):
    """`RestClient`, as far as it is used here."""

    def stream(self, path: str, params: Mapping[str, str]) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which objects of a kind are of interest. `namespace` limits to one."""

    field_selector: str = ""
    label_selector: str = ""
    namespace: str | None = None

    def params(self) -> dict[str, str]:
        asked = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector}
        return {name: value for name, value in asked.items() if value}


def list_params(narrowing: ListOptions, version: str, page_size: int, continue_token: str = "") -> dict[str, str]:
    """A page, or from a known version on (which the server has in its cache) the whole."""
    params = narrowing.params()
    if continue_token:
        return {**params, "limit": str(page_size), "continue": continue_token}
    if page_size and version in (FROM_CACHE, CONSISTENT):
        params["limit"] = str(page_size)
    if version:
        params["resourceVersion"] = version
    return params


def watch_params(narrowing: ListOptions, version: str, dice: Random) -> dict[str, str]:
    return {
        **narrowing.params(),
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": version,
        "timeoutSeconds": str(int(SHORTEST_WATCH_S * (1.0 + dice.random()))),
    }


def streamed_list_params(narrowing: ListOptions, version: str, dice: Random) -> dict[str, str]:
    """A watch that first tells everything there is."""
    asked = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    params = {**watch_params(narrowing, version, dice), **asked}
    if not version:
        del params["resourceVersion"]
    return params
