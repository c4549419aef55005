"""The playground's web page, with what the parts beside it know."""

from __future__ import annotations

from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model.core import Node, Pod
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.options import RunOptions
from kubesched.live.serving.live_explanation import LiveExplainer
from kubesched.live.serving.pages.debug_pages import queue_report
from kubesched.playground.controllers.runner import ControllerRunner
from kubesched.playground.web.page import WebPage, WebSettings
from kubesched.playground.web.pod_history import PodHistory
from kubesched.playground.web.sources import WebSources


def make_page(
    controllers: ControllerRunner, scheduler: LiveScheduler, options: RunOptions, client: RestClient
) -> WebPage:
    """On any free port of loopback."""
    view = controllers.view
    sources = WebSources(
        nodes=lambda: view.of(Node).values(),
        pods=lambda: view.of(Pod).values(),
        queue=lambda: queue_report(scheduler.loop.queue, scheduler.shell.now_s()),
        explain=LiveExplainer(
            scheduler.loop.cluster, lambda: scheduler.assembled, options.emulation, is_for_placed_too=True
        ),
        recorded=PodHistory(client),
    )
    return WebPage(WebSettings(port=0), sources)
