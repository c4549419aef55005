"""`/debug/queue`, `/debug/cache` and `/explain/NAMESPACE/POD`: looks inside that kube-scheduler does not offer.

JSON, or text for whoever accepts text/plain. Next: `queue_report`, `cache_report`, and `live_explanation`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from kubesched.explanation.explain import NotExplainableError
from kubesched.live.serving import answers
from kubesched.live.serving.pages.cache_report import cache_text
from kubesched.live.serving.pages.media_types import prefers_text
from kubesched.live.serving.pages.queue_report import queue_text
from kubesched.live.serving.sources import Report, Sources


@dataclass(frozen=True, slots=True)
class DebugPages:
    sources: Sources

    async def queue(self, request: web.Request) -> web.Response:
        if self.sources.queue is None:
            return answers.not_found()
        return _shown(request, self.sources.queue(), queue_text)

    async def cache(self, request: web.Request) -> web.Response:
        """With `?check`, compared with what the informers hold: scheduling waits for as long as that takes."""
        if self.sources.cache is None:
            return answers.not_found()
        return _shown(request, self.sources.cache("check" in request.query), cache_text)

    async def explain(self, request: web.Request) -> web.Response:
        if self.sources.explain is None:
            return answers.not_found()
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        try:
            found = await self.sources.explain(namespace, name, as_text=_wants_text(request))
        except NotExplainableError as problem:
            details = {"name": name, "kind": "pods"}
            return answers.status_answer(request, 404, "NotFound", str(problem), details)
        return answers.text(f"{found}\n") if isinstance(found, str) else answers.json_answer(request, found)


def _shown(request: web.Request, report: Report, text: Callable[[Report], str]) -> web.Response:
    return answers.text(text(report)) if _wants_text(request) else answers.json_answer(request, report)


def _wants_text(request: web.Request) -> bool:
    return prefers_text(request.headers.get("Accept", ""))
