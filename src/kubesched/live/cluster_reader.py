"""A live cluster, read once and never written to: lists everything that a decision can depend on, by GET alone.

Kinds that the server does not have, or does not show us, count as empty and are named in a warning; so is an object
that cannot be read. Only nodes and pods must be there: without them it is a `ClusterReadError`, as is everything else
that stands in the way.

All kinds are asked for at the same time, each page by page from one version of its list. They are not from one instant
together: a pod that is bound while we read may be seen with the volumes of a moment ago.

Next: `kubesched.k8s.dumped_kinds` for which kinds these are, `saved_form` for what of it goes into a file, `pending`
for the pods that wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.list_watch.exchange import K, KindDecoder, Listing, Unread
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.client.resources import Resource, resource_of
from kubesched.k8s.dumped_kinds import ALL_RESOURCES, AUTOSCALING_RESOURCES, GATED_RESOURCES
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.autoscaling import NODE_POOL_LABEL, NodePool
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.partial_reading import UnreadPod

INDISPENSABLE: tuple[type[KubeObject], ...] = (Node, Pod)
"""Without these an answer would be about another cluster."""

FIELD_SELECTORS: dict[type[KubeObject], str] = {Pod: "status.phase!=Succeeded,status.phase!=Failed"}
"""Finished pods hold nothing, and there may be many."""

PAGE_SIZE = 500
PAGE_TIMEOUT_S = 60.0


class ClusterReadError(KubeschedError):
    """The cluster cannot be read; says from where, what was asked for, and what came instead."""


class ClusterUnreachableError(ClusterReadError):
    """Nobody answers there."""


@dataclass(slots=True)
class ClusterReading:
    """What there is, kind by kind in the server's order, and what could not be read. `dumped` are the resources that
    were read, or that the server does not have."""

    objects: list[KubeObject] = field(default_factory=list)
    dumped: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class _Answered(Enum):
    SHOWN = auto()
    MISSING = auto()
    FORBIDDEN = auto()


@dataclass(slots=True)
class _KindReading:
    resource: Resource
    answered: _Answered
    listing: Listing[KubeObject] = field(default_factory=Listing)


class ClusterReader:
    """One server. `source` is its name in messages."""

    def __init__(self, api: Requester, source: str, *, page_size: int = PAGE_SIZE) -> None:
        self._api = api
        self._source = source
        self._page_size = page_size

    async def read(self, kinds: Container[type[KubeObject]] | None = None) -> ClusterReading:
        """Everything, or only these kinds. Nodes first and alone: what is wrong with server, login or rights shows
        there, once and at once."""
        nodes = await self._kind(resource_of(Node))
        others = [known for known in ALL_RESOURCES if known.type is not Node and (kinds is None or known.type in kinds)]
        others += [known for known in AUTOSCALING_RESOURCES if kinds is not None and known.type in kinds]
        answers = await asyncio.gather(*map(self._kind, others), return_exceptions=True)
        whole = ClusterReading()
        read = [nodes]
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            read.append(answer)
        whole.warnings.extend(self._warnings(read))
        for kind in read:
            whole.objects.extend(kind.listing.items)
            if kind.answered is not _Answered.FORBIDDEN:
                whole.dumped.append(kind.resource.full_name)
        return whole

    async def pods_named(self, name: str) -> list[Pod]:
        """The pods of this name in all namespaces, finished ones too."""
        pods = resource_of(Pod)
        with_name = {"fieldSelector": f"metadata.name={name}"}
        try:
            listing = await self._page(pods, KindDecoder(Pod), with_name)
        except (ApiError, Unreachable, AnswerLost) as failure:
            raise self._error(pods, failure) from None
        return listing.items

    async def _kind(self, resource: Resource) -> _KindReading:
        try:
            return await self._newest_version(resource)
        except (ApiError, Unreachable, AnswerLost) as failure:
            raise self._error(resource, failure) from None

    async def _newest_version(self, resource: Resource) -> _KindReading:
        optional = resource.type not in INDISPENSABLE
        missing: ApiError | None = None
        for version in resource.versions():
            try:
                return _KindReading(resource, _Answered.SHOWN, await self._whole_list(version))
            except ApiError as refusal:
                if refusal.is_forbidden and optional:
                    return _KindReading(resource, _Answered.FORBIDDEN)
                if not refusal.is_not_found:
                    raise
                missing = refusal
        if missing is not None and not optional:
            raise missing
        return _KindReading(resource, _Answered.MISSING)

    async def _whole_list(self, resource: Resource) -> Listing[KubeObject]:
        decoder = KindDecoder(resource.type)
        selector = FIELD_SELECTORS.get(resource.type)
        asked = {"fieldSelector": selector} if selector else {}
        paged = {**asked, "limit": str(self._page_size)}
        whole = page = await self._page(resource, decoder, paged)
        while page.continue_token:
            try:
                page = await self._page(resource, decoder, {**paged, "continue": page.continue_token})
            except ApiError as refusal:
                if not refusal.is_gone:
                    raise
                # The server forgot where we were: what was read is of a version that cannot be completed any more.
                return await self._page(resource, decoder, asked)
            whole.items.extend(page.items)
            whole.unread.extend(page.unread)
        return whole

    async def _page(self, resource: Resource, decoder: KindDecoder[K], params: Mapping[str, str]) -> Listing[K]:
        body = await self._api.request("GET", resource.path(), params=params, timeout_s=PAGE_TIMEOUT_S, gzip=True)
        try:
            return decoder.page(body)
        except msgspec.DecodeError:
            raise ClusterReadError(
                f"{self._source}: cannot list {resource.full_name}: the answer is not one of an API server"
            ) from None

    def _error(self, resource: Resource, failure: Exception) -> ClusterReadError:
        kind = ClusterUnreachableError if isinstance(failure, Unreachable | AnswerLost) else ClusterReadError
        return kind(f"{self._source}: cannot list {resource.full_name}: {failure}")

    def _warnings(self, read: list[_KindReading]) -> Iterator[str]:
        if missing := _names(read, _Answered.MISSING):
            yield f"{self._source}: the server does not have {missing}: none are assumed"
        if forbidden := _names(read, _Answered.FORBIDDEN):
            yield f"{self._source}: no right to list {forbidden}: none are assumed, and the answer may be wrong"
        if any(kind.resource.type is NodePool and kind.answered is _Answered.MISSING for kind in read):
            nodes = (item for item in read[0].listing.items if NODE_POOL_LABEL in (item.metadata.labels or {}))
            if (node := next(nodes, None)) is not None:
                yield f"{self._source}: the server has no NodePools, although node {node.metadata.name} is of one"
        for kind in read:
            for unread in kind.listing.unread:
                yield from self._take(kind, unread)

    def _take(self, kind: _KindReading, unread: Unread[KubeObject]) -> Iterator[str]:
        """What can be counted of an object that cannot be read in full; and the warning about it."""
        key, reading = unread.key(is_namespaced=kind.resource.namespaced), unread.read()
        counts = bool(key) and reading.item is not None and not isinstance(reading.item, UnreadPod)
        if counts and reading.item is not None:
            kind.listing.items.append(reading.item)
        if reading.problems or not counts:
            name = key or unread.where
            problem = reading.problems[0] if reading.problems else "metadata.name: a name is required"
            became = "counts as far as it can be" if counts else "is left out"
            yield f"{self._source}: {kind.resource.type.__name__} {name} cannot be read and {became}: {problem}"


def _names(read: list[_KindReading], answered: _Answered) -> str:
    """Without kinds that servers need not have; of Karpenter's, that they may not be listed is worth a word."""
    is_missing = answered is _Answered.MISSING
    optional = (*GATED_RESOURCES, *(AUTOSCALING_RESOURCES if is_missing else ()))
    kinds = (kind.resource for kind in read if kind.answered is answered)
    return ", ".join(resource.full_name for resource in kinds if resource not in optional)
