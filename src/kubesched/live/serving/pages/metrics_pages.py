"""`/metrics`, `/metrics/slis` and `/metrics/resources`. Next: `component_metrics`, `pod_resources`, and the engine's
own `collect`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from aiohttp import web

from kubesched.live.serving import answers
from kubesched.live.serving.health import HealthRecords
from kubesched.live.serving.pages import component_metrics
from kubesched.live.serving.pages.pod_resources import pod_resource_families
from kubesched.live.serving.pages.process_metrics import process_families
from kubesched.live.serving.sources import Sources
from kubesched.scheduler.engine.metrics.exposition import CONTENT_TYPE, render
from kubesched.scheduler.engine.metrics.series import MetricFamily


@dataclass(frozen=True, slots=True)
class MetricsPages:
    sources: Sources
    records: HealthRecords

    async def metrics(self, request: web.Request) -> web.Response:
        return _exposed(self._rendered([*self.sources.metrics(), *self._component()]))

    async def slis(self, request: web.Request) -> web.Response:
        return _exposed(self._rendered(component_metrics.health_families(self.records)))

    async def resources(self, request: web.Request) -> web.Response:
        """Only who leads tells: the series would come twice."""
        if not self.sources.is_leader():
            return answers.text("")
        pods = list(self.sources.pods())
        # Pods never change and may be many: they are counted in another thread, and the loop schedules on.
        return _exposed(await asyncio.to_thread(lambda: self._rendered(pod_resource_families(pods))))

    def _rendered(self, families: Iterable[MetricFamily]) -> str:
        return render(self.sources.shown(families))

    def _component(self) -> Iterable[MetricFamily]:
        sources = self.sources
        yield from process_families()
        yield component_metrics.build_family(sources.build)
        yield component_metrics.request_family(sources.requests())
        yield component_metrics.leadership_family(sources.leads())
        yield from component_metrics.set_aside_families(*sources.set_aside())
        yield component_metrics.failures_family(sources.failures())


def _exposed(exposition: str) -> web.Response:
    answer = answers.text(exposition, content_type=CONTENT_TYPE)
    answer.enable_compression()
    return answer
