"""Who may look, and what the page asks for, below `/api/`: answered from the sources, wherever the page is served.

    state                           nodes, pods, pod groups, claims, devices and queue as they are now
    stream                          the same, then every change, as server-sent events
    about                           what this page can do, and the command to begin with
    explain/NAMESPACE/POD           why the pod waits, or is where it is
    group/NAMESPACE/NAME            why a pod group waits, and which placement came nearest
    timeline/NAMESPACE/POD          what has happened to it, every attempt with its scores
    decisions?after=N               the last decisions
    whatif                          POST YAML: where a pod would go, without creating it
    object, objects, delete, cordon, scenarios/NAME     only where the page may change things

Whoever has the key that was printed may look, in a cookie or as a bearer token, and has to ask for us under our own
name. Other users of the machine reach the port, but not the key. A foreign page cannot read along either: the cookie
does not go with its requests, and a name of its own that leads to loopback is refused. Files of `static/` hold nothing
to hide. Answers are JSON, refusals JSON with one sentence.

Next: `page` for the servers, `stream` for how changes travel.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubesched.explanation.explain import NotExplainableError
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.playground.web.pod_story import timeline, why
from kubesched.playground.web.sources import ObjectRef, RefusedError, WebSources, Workbench
from kubesched.playground.web.stream import StateReader, StateStream

LOGIN_PATH = "/api/login"
_OWN_ADDRESS = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class PageKey:
    """The key of one page, made when it starts and good until it stops."""

    def __init__(self) -> None:
        self.text = secrets.token_urlsafe(32)

    def opens(self, given: str) -> bool:
        """Takes as long for a wrong key as for a nearly right one."""
        return secrets.compare_digest(given.encode(errors="surrogateescape"), self.text.encode())

    def is_given_by(self, request: web.Request) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.opens(token.strip())
        return self.opens(request.cookies.get(cookie_name(request), ""))

    def hand_over(self, request: web.Request, answer: web.Response) -> None:
        """From now on the browser has it where no script can read it."""
        answer.set_cookie(cookie_name(request), self.text, httponly=True, samesite="Strict", path="/api/")


def cookie_name(request: web.Request) -> str:
    """Cookies do not tell ports apart: pages of two playgrounds must not take each other's."""
    return f"kubesched-{request.host.rpartition(':')[2]}"


def guard(key: PageKey) -> Middleware:
    """Lets nobody else in."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not _OWN_ADDRESS.fullmatch(request.host):
            return refused(421, "this page goes by the name that was printed")
        is_open = request.path == LOGIN_PATH or not request.path.startswith("/api/")
        if request.headers.get("Origin", f"http://{request.host}") != f"http://{request.host}":
            return refused(403, "asked from a foreign page")  # one of another port has our cookie, too
        if not is_open and not key.is_given_by(request):
            return refused(401, "open the page with the link that was printed: it has the key")
        return await handler(request)

    return guarded


async def add_headers(_request: web.Request, answer: web.StreamResponse) -> None:
    """A signal handler: streams too have begun by the time that a middleware sees their answer."""
    answer.headers.update(HEADERS)


def json_answer(body: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json")


def refused(status: int, message: str) -> web.Response:
    return json_answer({"message": message}, status)


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
