"""Which kinds a server has, by its discovery: for those who look after all of them (garbage, namespaces).

Asked again now and then, and when a custom resource definition changes: kinds come and go with those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.model.meta import KubeObject
from kubesched.playground.controllers.kinds import WATCHED

REFRESH_S = 30.0


@dataclass(frozen=True, slots=True)
class DiscoveredKind:
    """`home.type` holds metadata only, unless controllers watch the kind anyway."""

    home: Resource
    kind: str
    verbs: frozenset[str]


class _ApiResource(msgspec.Struct, gc=False):
    name: str
    kind: str = ""
    namespaced: bool = False
    verbs: list[str] = []


class _ResourceList(msgspec.Struct, gc=False):
    resources: list[_ApiResource] = []


class _GroupVersion(msgspec.Struct, rename="camel", gc=False):
    group_version: str
    version: str


class _Group(msgspec.Struct, rename="camel", gc=False):
    name: str
    preferred_version: _GroupVersion
    versions: list[_GroupVersion] = []

    def in_order(self) -> list[_GroupVersion]:
        """The preferred version, then the others, which may have kinds that it lacks."""
        others = [one for one in self.versions if one.version != self.preferred_version.version]
        return [self.preferred_version, *others]


class _GroupList(msgspec.Struct, gc=False):
    groups: list[_Group] = []


class DiscoveredKinds:
    def __init__(self, api: Requester, now_s: Callable[[], float]) -> None:
        self._api = api
        self._now_s = now_s
        self._asked_at_s = float("-inf")
        self._types: dict[tuple[str, str], type[KubeObject]] = {
            (known.group, known.plural): known.type for known in WATCHED
        }
        self._kinds: dict[tuple[str, str], DiscoveredKind] = {}
        self._asking = asyncio.Lock()

    def forget(self) -> None:
        """Kinds have come or gone: the server is asked anew."""
        self._asked_at_s = float("-inf")

    async def kinds(self) -> list[DiscoveredKind]:
        """Those that have objects of their own, each in the preferred version of its group if that has it."""
        async with self._asking:
            if self._now_s() - self._asked_at_s > REFRESH_S:
                self._asked_at_s = self._now_s()  # what changes while we ask is asked for again
                try:
                    self._kinds = _first_of_each(await self._ask())
                except BaseException:
                    self.forget()
                    raise
        return list(self._kinds.values())

    async def find(self, api_version: str, kind: str) -> DiscoveredKind | None:
        """By what an owner reference says."""
        group = api_version.rpartition("/")[0]
        return next((known for known in await self.kinds() if known.kind == kind and known.home.group == group), None)

    async def _ask(self) -> list[DiscoveredKind]:
        groups = msgspec.json.decode(await self._api.request("GET", "/apis"), type=_GroupList).groups
        versions = [("", "v1", "/api/v1")]
        versions += [
            (group.name, one.version, f"/apis/{one.group_version}") for group in groups for one in group.in_order()
        ]
        found: list[DiscoveredKind] = []
        for group_name, version, path in versions:
            try:
                answer = await self._api.request("GET", path)
            except ApiError as error:
                if error.is_not_found or error.status >= 500:
                    continue  # an aggregated API whose server is away
                raise
            resources = msgspec.json.decode(answer, type=_ResourceList).resources
            found.extend(self._of_group(group_name, version, resources))
        return found

    def _of_group(self, group: str, version: str, resources: list[_ApiResource]) -> Iterator[DiscoveredKind]:
        for known in resources:
            if "/" in known.name or not {"list", "delete"} <= set(known.verbs):
                continue
            if (group, known.name) not in self._types:
                made = msgspec.defstruct(f"{known.kind}Metadata", [], bases=(KubeObject,), frozen=True)
                self._types[group, known.name] = cast("type[KubeObject]", made)
            home = Resource(
                self._types[group, known.name], group, version, known.name, known.namespaced, kind_name=known.kind
            )
            yield DiscoveredKind(home, known.kind, frozenset(known.verbs))


def _first_of_each(found: Iterable[DiscoveredKind]) -> dict[tuple[str, str], DiscoveredKind]:
    """Of a kind that several versions have, the version that was asked first."""
    kinds: dict[tuple[str, str], DiscoveredKind] = {}
    for one in found:
        kinds.setdefault((one.home.group, one.home.plural), one)
    return kinds
