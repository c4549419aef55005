"""What the page asks for, below `/api/`: answered from the sources, wherever the page is served.

    state                           nodes, pods, pod groups, claims, devices and queue as they are now
    stream                          the same, then every change, as server-sent events
    about                           what this page can do, and the command to begin with
    explain/NAMESPACE/POD           why the pod waits, or is where it is
    group/NAMESPACE/NAME            why a pod group waits, and which placement came nearest
    timeline/NAMESPACE/POD          what has happened to it, every attempt with its scores
    decisions?after=N               the last decisions
    whatif                          POST YAML: where a pod would go, without creating it
    object, objects, delete, cordon, scenarios/NAME     only where the page may change things

Next: `page` for the playground's own server, `stream` for how changes travel.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from typing import TypeVar

import msgspec
from aiohttp import web

from kubesched.explanation.explain import NotExplainableError
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.playground.web.access import json_answer, refused
from kubesched.playground.web.pod_story import timeline, why
from kubesched.playground.web.sources import ObjectRef, RefusedError, WebSources, Workbench
from kubesched.playground.web.stream import StateReader, StateStream

_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")

T = TypeVar("T")
Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Manifest(msgspec.Struct, rename="camel"):
    yaml: str
    dry_run: bool = False


class _Cordon(msgspec.Struct):
    node: str
    cordoned: bool


class _Ref(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    name: str
    namespace: str = ""


class PageApi:
    """`readable` and `writable` are paths below `/api/`, and who answers them."""

    def __init__(self, sources: WebSources, pause_s: float, now_s: Callable[[], float]) -> None:
        self._sources = sources
        self._reader = StateReader(sources, now_s)
        self._stream = StateStream(self._reader, pause_s)

    def readable(self) -> list[tuple[str, Page]]:
        return [
            ("state", self._state),
            ("stream", self._changes),
            ("about", self._about),
            ("explain/{namespace}/{name}", self._explain),
            ("group/{namespace}/{name}", self._explain_group),
            ("timeline/{namespace}/{name}", self._timeline),
            ("decisions", self._decisions),
        ]

    def writable(self) -> list[tuple[str, str, Page]]:
        """With their methods."""
        found: list[tuple[str, str, Page]] = []
        if self._sources.what_if is not None:
            found.append(("POST", "whatif", self._what_if))
        if self._sources.workbench is not None:
            found.extend(_Changes(self._sources.workbench).routes())
        return found

    async def stop(self) -> None:
        await self._stream.stop()

    async def _state(self, request: web.Request) -> web.Response:
        return json_answer(self._reader.read().report())

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await answer.prepare(request)
        self._sources.looked_at()
        messages = self._stream.listen()
        with suppress(ConnectionError):  # the reader went away, as readers do
            async for message in messages:
                await answer.write(message)
        await messages.aclose()
        return answer

    async def _about(self, request: web.Request) -> web.Response:
        workbench = self._sources.workbench
        return json_answer(
            {
                "canWrite": workbench is not None,
                "canAsk": self._sources.what_if is not None,
                "hint": self._sources.hint,
                "scenarios": [] if workbench is None else [asdict(one) for one in workbench.scenarios()],
            }
        )

    async def _explain(self, request: web.Request) -> web.Response:
        found = _key_of(request)
        if found is None or self._sources.explain is None:
            return refused(404, "nothing to explain here")
        try:
            report = await self._sources.explain(*found)
        except NotExplainableError as problem:
            return refused(404, str(problem))
        return json_answer(why(report))

    async def _explain_group(self, request: web.Request) -> web.Response:
        found = _key_of(request)
        if found is None or self._sources.explain_group is None:
            return refused(404, "nothing to explain here")
        try:
            return json_answer(await self._sources.explain_group(*found))
        except NotExplainableError as problem:
            return refused(404, str(problem))

    async def _what_if(self, request: web.Request) -> web.Response:
        given = await _body(request, _Manifest)
        if given is None or self._sources.what_if is None:
            return refused(400, 'expected {"yaml": "..."}')
        try:
            return json_answer(why(await self._sources.what_if(given.yaml)))
        except (RefusedError, NotExplainableError) as problem:
            return refused(422, str(problem))

    async def _timeline(self, request: web.Request) -> web.Response:
        found = _key_of(request)
        if found is None:
            return refused(404, "no pod has such a name")
        try:
            recorded = await self._sources.recorded(*found)
        except (ApiError, Unreachable, AnswerLost) as problem:
            return refused(502, f"the API server did not tell: {problem}")
        decisions = self._sources.decisions("/".join(found), 0)["decisions"]
        return json_answer({"timeline": timeline(recorded, decisions), "note": recorded.note})

    async def _decisions(self, request: web.Request) -> web.Response:
        after = request.query.get("after", "0")
        return json_answer(self._sources.decisions("", int(after) if after.isdecimal() else 0))


class _Changes:
    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    def routes(self) -> list[tuple[str, str, Page]]:
        return [
            ("GET", "object", self._read),
            ("POST", "objects", self._write),
            ("POST", "delete", self._delete),
            ("POST", "cordon", self._cordon),
            ("POST", "scenarios/{name}", self._load),
        ]

    async def _read(self, request: web.Request) -> web.Response:
        asked = request.query
        ref = ObjectRef(
            asked.get("apiVersion", ""), asked.get("kind", ""), asked.get("namespace", ""), asked.get("name", "")
        )
        return await self._answer(self._yaml(ref)) if _is_valid(ref) else refused(404, "no object has such a name")

    async def _yaml(self, ref: ObjectRef) -> dict[str, object]:
        return {"yaml": await self._workbench.read(ref)}

    async def _write(self, request: web.Request) -> web.Response:
        given = await _body(request, _Manifest)
        if given is None:
            return refused(400, 'expected {"yaml": "..."}')
        return await self._answer(self._written(given))

    async def _written(self, given: _Manifest) -> dict[str, object]:
        return {"objects": await self._workbench.write(given.yaml, is_dry_run=given.dry_run)}

    async def _delete(self, request: web.Request) -> web.Response:
        given = await _body(request, _Ref)
        ref = None if given is None else ObjectRef(given.api_version, given.kind, given.namespace, given.name)
        if ref is None or not _is_valid(ref):
            return refused(400, "no object has such a name")
        return await self._answer(self._deleted(ref))

    async def _deleted(self, ref: ObjectRef) -> dict[str, object]:
        await self._workbench.delete(ref)
        return {}

    async def _cordon(self, request: web.Request) -> web.Response:
        given = await _body(request, _Cordon)
        if given is None or not _NAME.fullmatch(given.node):
            return refused(400, "no node has such a name")
        return await self._answer(self._cordoned(given))

    async def _cordoned(self, given: _Cordon) -> dict[str, object]:
        await self._workbench.cordon(given.node, is_cordoned=given.cordoned)
        return {}

    async def _load(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in (one.name for one in self._workbench.scenarios()):
            return refused(404, "there is no such scenario")
        return await self._answer(self._loaded(name))

    async def _loaded(self, name: str) -> dict[str, object]:
        await self._workbench.load(name)
        return {}

    async def _answer(self, work: Awaitable[dict[str, object]]) -> web.Response:
        try:
            return json_answer(await work)
        except RefusedError as problem:
            return refused(422, str(problem))
        except (Unreachable, AnswerLost) as problem:
            return refused(502, f"the API server did not answer: {problem}")


async def _body(request: web.Request, kind: type[T]) -> T | None:
    """None if the body is not such."""
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _is_valid(ref: ObjectRef) -> bool:
    """They become part of a path."""
    return bool(_NAME.fullmatch(ref.name) and (not ref.namespace or _NAME.fullmatch(ref.namespace)))


def _key_of(request: web.Request) -> tuple[str, str] | None:
    """Namespace and name, if they may be such: they become part of a path."""
    namespace, name = request.match_info["namespace"], request.match_info["name"]
    is_valid = _NAME.fullmatch(namespace) and _NAME.fullmatch(name)
    return (namespace, name) if is_valid else None
