"""`/configz`, `/statusz`, `/flagz` and `/version`: what runs here, and how it was told to. Next: `zpages`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from kubesched.live.serving import answers
from kubesched.live.serving.pages import zpages
from kubesched.live.serving.pages.process_metrics import start_time_s
from kubesched.live.serving.pages.zpage_answers import negotiated
from kubesched.live.serving.sources import Sources

CONFIGZ_NAME = "componentconfig"
"""Under which kube-scheduler shows its configuration."""
EMULATION_NAME = "emulation"
"""Under which the predicates and priorities, or plugins, of an emulated version are shown beside it."""


@dataclass(frozen=True, slots=True)
class ComponentPages:
    sources: Sources
    paths: Callable[[], Sequence[str]]
    """Of all pages."""

    async def configz(self, _request: web.Request) -> web.Response:
        shown = {CONFIGZ_NAME: self.sources.configuration()}
        if self.sources.emulation is not None:
            shown[EMULATION_NAME] = self.sources.emulation()
        body = json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
        return answers.text(body, content_type=answers.JSON, no_sniff=True)

    async def version(self, request: web.Request) -> web.Response:
        return answers.json_answer(request, self.sources.build.to_dict())

    async def flagz(self, request: web.Request) -> web.Response:
        flags = self.sources.flags()
        return negotiated(
            request,
            "Flagz",
            lambda: zpages.flagz_text(flags),
            lambda version: zpages.flagz_object(flags, version),
        )

    async def statusz(self, request: web.Request) -> web.Response:
        shown = (self.sources.build, start_time_s(), time.time(), self.paths())
        return negotiated(
            request,
            "Statusz",
            lambda: zpages.statusz_text(*shown),
            lambda version: zpages.statusz_object(*shown, version),
        )
